//go:build linux

package reaper

import (
	"errors"
	"io"
	"os"
)

// feed copies r to a command's standard input until r ends, the command closes
// its end, or f is closed because the command has ended. It returns the error of
// r, except io.EOF; then it leaves f open, lest the command take what it got for
// the whole. A Read that does not return keeps it; that is its caller's business.
func feed(f *os.File, r io.Reader, terminal bool) error {
	buf := make([]byte, copyBuffer)
	midLine := false
	for {
		n, rerr := r.Read(buf)
		if n > 0 {
			if _, err := f.Write(buf[:n]); err != nil {
				if !terminal {
					_ = f.Close()
				}
				return nil // the command wants no more, which is no error
			}
			midLine = buf[n-1] != '\n'
		}
		switch {
		case rerr == nil:
		case !errors.Is(rerr, io.EOF):
			return rerr
		case terminal:
			sendEnd(f, midLine)
			return nil
		default:
			_ = f.Close() // closed already when the command was over first
			return nil
		}
	}
}

// sendEnd ends the input of a terminal, which cannot be closed in one direction.
func sendEnd(f *os.File, midLine bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	var end []byte
	if err := raw.Control(func(fd uintptr) { end = endOfInput(int(fd), midLine) }); err == nil && len(end) > 0 {
		_, _ = f.Write(end) // a command that is over needs none
	}
}
