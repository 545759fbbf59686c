//go:build unix

package mux

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Stdio makes a connection of this process's standard input and output and puts
// /dev/null in their place, so that nothing else reads, writes or inherits them.
// Pipes and sockets are made non-blocking: then waiting for them costs no thread,
// closing interrupts a read, and frames are written by the goroutine that sends
// them. Nobody else may use the same open pipe end, as is usual. It is called once,
// early, before any command is started.
func Stdio() (io.ReadWriteCloser, error) {
	in, err := takeOver(0, "stdin")
	if err != nil {
		return nil, err
	}
	out, err := takeOver(1, "stdout")
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	return Join(in, out), nil
}

// takeOver moves a descriptor to another number, not inherited, and leaves
// /dev/null behind.
func takeOver(fd int, name string) (*os.File, error) {
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if pollable(moved) {
		err = unix.SetNonblock(moved, true)
	}
	if err == nil {
		err = silence(fd)
	}
	if err != nil {
		_ = unix.Close(moved)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return os.NewFile(uintptr(moved), name), nil
}

// pollable reports whether a descriptor is a pipe or a socket. Terminals and files
// stay as they are: others use them too.
func pollable(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	return kind == unix.S_IFIFO || kind == unix.S_IFSOCK
}

// silence puts /dev/null in the place of a descriptor.
func silence(fd int) error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	return unix.Dup2(null, fd)
}
