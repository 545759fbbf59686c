//go:build linux

package reaper

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// defaultSize is the size of a terminal where none is given: programs divide by
// it.
var defaultSize = unix.Winsize{Row: 24, Col: 80}

// openPTY makes a pseudo-terminal of that size: the helper's end, which does not
// block, and the command's.
func openPTY(size proc.Size) (master *os.File, slave int, err error) {
	fd, err := openPTMX()
	if err != nil {
		return nil, -1, err
	}
	if slave, err = unlockSlave(fd); err == nil {
		err = setSize(fd, size)
		if err != nil {
			_ = unix.Close(slave)
		}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, -1, fmt.Errorf("making a pseudo-terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}

// openPTMX opens the multiplexer of the environment's own devpts instance.
func openPTMX() (int, error) {
	var errs []error
	for _, name := range []string{"/dev/ptmx", "/dev/pts/ptmx"} {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == nil {
			return fd, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	return -1, fmt.Errorf("no pseudo-terminals in this environment: %w", errors.Join(errs...))
}

// unlockSlave opens the other end by way of the first one: by name it could be
// another instance's.
func unlockSlave(master int) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno == 0 {
		return int(fd), nil
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN) // a kernel before 4.13
	if err != nil {
		return -1, err
	}
	return unix.Open("/dev/pts/"+strconv.Itoa(n), flags, 0)
}

// setSize sets the size of a terminal; the kernel tells its foreground group.
func setSize(fd int, size proc.Size) error {
	ws := unix.Winsize{Row: size.Rows, Col: size.Cols}
	if ws.Row == 0 || ws.Col == 0 {
		ws = defaultSize
	}
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &ws)
}

// endOfInput returns what to write to a terminal so that who reads from it sees
// the end of its input: the end-of-file character, twice after an incomplete line,
// where the first only ends the line. A terminal in raw mode has no such thing.
func endOfInput(fd int, midLine bool) []byte {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil || t.Lflag&unix.ICANON == 0 {
		return nil
	}
	eof := t.Cc[unix.VEOF]
	if midLine {
		return []byte{eof, eof}
	}
	return []byte{eof}
}
