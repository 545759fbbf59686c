// Package osthread runs functions on operating-system threads of their own, for
// what the kernel keeps per thread: the parent of a process, membership in a
// version 1 control group, the identity used for file access.
//
// It knows nothing of what is done there.
package osthread

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Go runs f on a thread that nothing else uses and that ends when f returns, so
// that f may change the thread in ways that cannot be undone. It is never the
// process's first thread, which cannot end.
func Go(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return // still locked: the runtime ends the thread
		}
		// This is the first thread. Hold it until another goroutine runs, which
		// then has another one.
		elsewhere := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(elsewhere)
			f()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}

// AsUser runs f on a thread of its own that accesses files with the rights of a
// user without further groups, and returns when f has. It needs to be root; the
// rest of the process keeps its rights.
func AsUser(uid, gid int, f func()) error {
	done := make(chan error, 1)
	Go(func() {
		// The raw calls change this thread only; the wrappers of the standard
		// library would change all of them.
		none := [1]uint32{}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
			done <- os.NewSyscallError("setgroups", errno)
			return
		}
		for _, set := range []struct {
			name string
			nr   uintptr
			id   int
		}{{"setfsgid", unix.SYS_SETFSGID, gid}, {"setfsuid", unix.SYS_SETFSUID, uid}} {
			// The call returns the previous id and no error; asking with an id that
			// is none tells whether it took effect.
			_, _, _ = syscall.RawSyscall(set.nr, uintptr(set.id), 0, 0)
			if now, _, _ := syscall.RawSyscall(set.nr, ^uintptr(0), 0, 0); int(int32(now)) != set.id {
				done <- os.NewSyscallError(set.name, unix.EPERM)
				return
			}
		}
		f()
		done <- nil
	})
	return <-done
}
