//go:build linux

package reaper

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// copyBuffer is the size of one read from a command's output.
	copyBuffer = 32 << 10
	// terminalBacklog is more than a terminal can hold of what was written to it.
	terminalBacklog = 1 << 20
)

// output is one output stream of a command. Its goroutine, in pump, goes through
// three states: it delivers until the stream ends or the direct child has; then
// what that child wrote and is still in the kernel; then it discards what
// descendants write, so that they neither block nor get SIGPIPE while they are
// being ended, or for as long as they are kept.
type output struct {
	f        *os.File // the reading end, non-blocking
	terminal bool
	keep     bool      // the tree outlives an error of the writer
	w        io.Writer // nil discards

	delivered chan struct{} // closed when everything the direct child wrote is
	err       error         // of the writer; valid once delivered is closed
	over      chan struct{} // closed when nothing is read any more
}

func newOutput(f *os.File, terminal, keep bool, w io.Writer) *output {
	return &output{
		f: f, terminal: terminal, keep: keep, w: w,
		delivered: make(chan struct{}), over: make(chan struct{}),
	}
}

// childEnded tells that the direct child writes no more. A writer that blocks
// delays what follows, as it delays everything.
func (o *output) childEnded() {
	_ = o.f.SetReadDeadline(time.Unix(1, 0)) // wakes pump; a closed file needs no waking
}

// close ends the stream; pump ends with it.
func (o *output) close() { _ = o.f.Close() }

// pump runs until the stream ends or is closed.
func (o *output) pump() {
	defer close(o.over)
	buf := make([]byte, copyBuffer)
	ended, err := o.deliver(buf)
	if err != nil && !o.keep {
		// As in a pipeline whose reader has gone: the command gets SIGPIPE.
		ended = true
		o.close()
	}
	o.err = err
	close(o.delivered)
	if ended {
		return
	}
	_ = o.f.SetReadDeadline(time.Time{})
	_, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{o.f}, buf) // until the end, or close
}

// deliver hands on what the direct child wrote. ended tells that nothing more can
// come from anyone; err is the writer's.
func (o *output) deliver(buf []byte) (ended bool, err error) {
	for {
		n, rerr := o.f.Read(buf)
		if err := o.write(buf[:n]); err != nil {
			return false, err
		}
		switch {
		case rerr == nil:
		case errors.Is(rerr, os.ErrDeadlineExceeded):
			return o.rest(buf)
		default: // io.EOF; EIO from a terminal that nobody has open any more; closed
			return true, nil
		}
	}
}

// rest delivers what lies in the kernel now, and not what descendants go on to
// write, which may never end.
func (o *output) rest(buf []byte) (ended bool, err error) {
	raw, err := o.f.SyscallConn()
	if err != nil {
		return true, nil // closed
	}
	left := 0
	if cerr := raw.Control(func(fd uintptr) { left, err = o.backlog(int(fd)) }); cerr != nil || err != nil {
		return true, nil
	}
	for left > 0 {
		var n int
		var rerr error
		if cerr := raw.Control(func(fd uintptr) { n, rerr = read(int(fd), buf[:min(len(buf), left)]) }); cerr != nil {
			return true, nil
		}
		switch {
		case rerr == syscall.EAGAIN:
			return false, nil
		case rerr != nil || n == 0:
			return true, nil
		}
		left -= n
		if err := o.write(buf[:n]); err != nil {
			return false, err
		}
	}
	return false, nil
}

// backlog bounds how many bytes are waiting. Of a terminal the kernel can only be
// asked by reading, since some may still be on their way through it.
func (o *output) backlog(fd int) (int, error) {
	if o.terminal {
		return terminalBacklog, nil
	}
	return unix.IoctlGetInt(fd, unix.TIOCINQ)
}

func (o *output) write(b []byte) error {
	if o.w == nil || len(b) == 0 {
		return nil
	}
	n, err := o.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
