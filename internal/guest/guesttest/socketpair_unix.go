//go:build unix

package guesttest

import "golang.org/x/sys/unix"

func socketpair() ([2]int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, err
}
