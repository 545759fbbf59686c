//go:build linux

package reaper

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls that a reaper makes while a tree runs and ends, without telling
// the Go runtime. A call it knows of can cost the thread its turn, and the runtime
// then wants another thread to go on with. When the tree is a fork bomb there is no
// room for one, and the runtime would end the reaper. None of these calls waits for
// anything but the kernel's own locks.

func rawErr(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// rawOpen opens a file for reading, close on exec.
func rawOpen(path string, flags int) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	at := unix.AT_FDCWD
	for {
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(flags|unix.O_RDONLY|unix.O_CLOEXEC), 0, 0, 0)
		if errno != unix.EINTR {
			return int(fd), rawErr(errno)
		}
	}
}

// rawRead reads what does not block: a file in /proc.
func rawRead(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != unix.EINTR {
			return int(n), rawErr(errno)
		}
	}
}

// rawReadDirent reads entries of a directory.
func rawReadDirent(fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != unix.EINTR {
			return int(n), rawErr(errno)
		}
	}
}

func rawClose(fd int) { _, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// rawChdir goes to a directory that is always there.
func rawChdir(dir string) {
	if p, err := syscall.BytePtrFromString(dir); err == nil {
		_, _, _ = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(p)), 0, 0)
	}
}

func rawKill(pid int, sig unix.Signal) error {
	_, _, errno := syscall.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(sig), 0)
	return rawErr(errno)
}

func rawPidfdOpen(pid int) (int, error) {
	fd, _, errno := syscall.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0)
	return int(fd), rawErr(errno)
}

func rawPidfdSendSignal(fd int, sig unix.Signal) error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(fd), uintptr(sig), 0, 0, 0, 0)
	return rawErr(errno)
}

// rawChildless reports whether this process has no child at all, not even a dead
// one.
func rawChildless() bool {
	var info unix.Siginfo
	const options = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT | unix.WALL
	_, _, errno := syscall.RawSyscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), options, 0, 0)
	return errno == unix.ECHILD
}

// rawSend sends on a socket without waiting.
func rawSend(fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if errno != unix.EINTR {
			return int(n), rawErr(errno)
		}
	}
}
