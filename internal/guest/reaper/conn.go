//go:build linux

package reaper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the control messages between a Runner and a reaper.
const (
	maxSpec  = 8 << 20  // to a reaper: a command's specification
	maxReply = 64 << 10 // from a reaper
	maxFiles = 8        // descriptors with one message
	// sendTimeout bounds a send to a reaper that does not read: it is stopped.
	sendTimeout = 5 * time.Second
)

const connHeader = 5 // length of the payload, kind

// conn carries messages and open files between a Runner and one reaper. One
// goroutine may receive, any may send.
type conn struct {
	f   *os.File
	raw syscall.RawConn

	mu sync.Mutex // one message at a time
}

// newConn takes over a non-blocking stream socket.
func newConn(fd int) (*conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "control")
	if f == nil {
		return nil, unix.EBADF
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &conn{f: f, raw: raw}, nil
}

// alive reports whether the peer still has the connection open. Nothing may be
// receiving.
func (c *conn) alive() bool {
	var n int
	var err error
	if cerr := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	}); cerr != nil {
		return false
	}
	return err == unix.EAGAIN || err == nil && n > 0
}

// Close ends the connection; the peer sees its end.
func (c *conn) Close() error { return c.f.Close() }

// send sends one message and copies of open files with it.
func (c *conn) send(kind message, payload []byte, files ...int) error {
	b := encode(kind, payload)
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.f.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	for len(b) > 0 {
		var n int
		var err error
		if werr := c.raw.Write(func(fd uintptr) bool {
			n, err = unix.SendmsgN(int(fd), b, rights, nil, unix.MSG_NOSIGNAL)
			return err != unix.EAGAIN
		}); werr != nil {
			return werr
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, rights = b[n:], nil // the files went with the first byte
	}
	return nil
}

// recv receives one message of at most limit bytes. The descriptors, close on
// exec, belong to the caller. io.EOF means that the peer is gone and nothing was
// cut.
func (c *conn) recv(limit int) (kind message, payload []byte, fds []int, err error) {
	var header [connHeader]byte
	fds, err = c.fill(header[:], maxFiles)
	if err != nil {
		closeFDs(fds)
		return 0, nil, nil, err
	}
	n := binary.BigEndian.Uint32(header[:])
	if uint64(n) > uint64(limit) {
		closeFDs(fds)
		return 0, nil, nil, fmt.Errorf("control message of %d bytes, at most %d are allowed", n, limit)
	}
	payload = make([]byte, n)
	if _, err := c.fill(payload, 0); err != nil {
		closeFDs(fds)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, nil, err
	}
	return message(header[4]), payload, fds, nil
}

// fill fills b and collects at most room descriptors.
func (c *conn) fill(b []byte, room int) (fds []int, err error) {
	var oob []byte
	if room > 0 {
		oob = make([]byte, unix.CmsgSpace(4*room))
	}
	for got := 0; got < len(b); {
		var n, oobn int
		var err error
		if rerr := c.raw.Read(func(fd uintptr) bool {
			n, oobn, _, _, err = unix.Recvmsg(int(fd), b[got:], oob, unix.MSG_CMSG_CLOEXEC)
			return err != unix.EAGAIN
		}); rerr != nil {
			return fds, rerr
		}
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECONNRESET:
			return fds, io.EOF // the peer died with messages unread
		case err != nil:
			return fds, err
		case n == 0 && got > 0:
			return fds, io.ErrUnexpectedEOF
		case n == 0:
			return fds, io.EOF
		}
		got += n
		more, err := received(oob[:oobn])
		fds = append(fds, more...)
		if err != nil {
			return fds, err
		}
	}
	return fds, nil
}

// encode makes the bytes of a message.
func encode(kind message, payload []byte) []byte {
	b := make([]byte, connHeader, connHeader+len(payload))
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	b[4] = byte(kind)
	return append(b, payload...)
}

// line is a reaper's end of a connection: it sends with raw calls.
type line struct {
	*conn
	fd int
}

// send sends one message. Only one goroutine may.
func (l line) send(kind message, payload []byte) error {
	b := encode(kind, payload)
	for len(b) > 0 {
		n, err := rawSend(l.fd, b)
		if err == unix.EAGAIN {
			n, err = l.f.Write(b) // the helper is slow to read: wait for it
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// received takes the descriptors out of control data.
func received(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range msgs {
		more, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return fds, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

// closeFDs closes descriptors. Errors of closing say nothing about a command.
func closeFDs(fds []int) {
	for _, fd := range fds {
		rawClose(fd)
	}
}
