//go:build unix

package mux

import (
	"errors"
	"io"
	"syscall"
)

// direct writes to a descriptor without ever waiting for the peer. It is used by
// one goroutine at a time.
type direct struct {
	raw syscall.RawConn
	b   []byte
	n   int
	err error
	fn  func(fd uintptr) bool
}

// newDirect returns nil where w is not a descriptor, or one that may block.
func newDirect(w io.Writer) *direct {
	c, ok := writeSide(w).(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil || !nonblocking(raw) {
		return nil
	}
	d := &direct{raw: raw}
	d.fn = d.once // made once: it would escape on every write
	return d
}

func nonblocking(raw syscall.RawConn) bool {
	ok := false
	err := raw.Control(func(fd uintptr) {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
		ok = errno == 0 && flags&syscall.O_NONBLOCK != 0
	})
	return err == nil && ok
}

// write writes what fits without waiting and returns how much that was.
func (d *direct) write(b []byte) (int, error) {
	d.b, d.n, d.err = b, 0, nil
	err := d.raw.Write(d.fn)
	d.b = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

func (d *direct) once(fd uintptr) bool {
	for d.n < len(d.b) {
		n, err := syscall.Write(int(fd), d.b[d.n:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return true
		case err != nil:
			d.err = err
			return true
		case n == 0:
			d.err = io.ErrUnexpectedEOF
			return true
		}
		d.n += n
	}
	return true
}
