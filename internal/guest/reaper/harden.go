//go:build linux

package reaper

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Harden prepares the calling process for having hostile children of the same
// user: they can neither debug it nor read its memory, environment and
// descriptors, and it leaves no core file; it is called name in a process list,
// adopts its descendants' orphans, and none of its open descriptors from 3 on is
// inherited by what it starts. The helper calls it once, first thing; reapers call
// it themselves.
func Harden(name string) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming non-dumpable: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming child subreaper: %w", err)
	}
	if b, err := unix.ByteSliceFromString(name); err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0, 0, 0) // for people only
	}
	return closeOnExec(3)
}

// closeOnExec marks every descriptor from first on.
func closeOnExec(first int) error {
	if err := unix.CloseRange(uint(first), ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err == nil {
		return nil
	}
	fds, err := numericNames("/proc/self/fd") // a kernel before 5.11, or a filter
	if err != nil {
		return fmt.Errorf("marking descriptors: %w", err)
	}
	for _, fd := range fds {
		if fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// Warm makes sure that the Go runtime has n threads that can wait in system calls
// while another one runs. A process that needs another thread when the process limit is reached,
// which is what a fork bomb does, would be ended by the runtime.
func Warm(n int) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return // it works without, as long as nobody is at the limit
	}
	begun := make(chan struct{})
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			begun <- struct{}{}
			var b [1]byte
			_, _ = unix.Read(p[0], b[:]) // keeps the thread until the pipe is closed
		})
	}
	for range n {
		<-begun
	}
	_ = unix.Close(p[1])
	done.Wait()
	_ = unix.Close(p[0])
}

// signalCount is the number of signals plus one.
const signalCount = 65

// defaultSignals gives every signal that was ignored when this process was
// started its default meaning again: what is ignored stays ignored in children.
// (The Go runtime resets the handlers it installed itself.)
func defaultSignals() {
	for sig := 1; sig < signalCount; sig++ {
		// The kernel's struct sigaction is the handler and three further fields, 32
		// bytes on amd64 and arm64.
		var action [8]uintptr
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0); errno != 0 {
			continue
		}
		if action[0] != sigIgnore {
			continue
		}
		action = [8]uintptr{}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

const sigIgnore = 1 // SIG_IGN

// unmasked calls f on a thread that blocks no signal, since the signals blocked
// where a process is forked stay blocked in it.
func unmasked(f func()) {
	var old, none unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, nil, &old); err != nil || old == none {
		f() // as nearly always; locking a thread would cost another one
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		f()
		return
	}
	f()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) // it was the mask a moment ago
}
