package mux

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Join makes one connection of two one-way pipes, such as a program's standard
// input and output. Closing it closes both.
func Join(r io.ReadCloser, w io.WriteCloser) io.ReadWriteCloser {
	return &joined{r: r, w: w}
}

type joined struct {
	r    io.ReadCloser
	w    io.WriteCloser
	once sync.Once
	err  error
}

func (j *joined) Read(p []byte) (int, error)  { return j.r.Read(p) }
func (j *joined) Write(p []byte) (int, error) { return j.w.Write(p) }

// SetReadDeadline is that of the pipe that is read; os.ErrNoDeadline where it has
// none.
func (j *joined) SetReadDeadline(t time.Time) error {
	if d, ok := j.r.(interface{ SetReadDeadline(t time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return os.ErrNoDeadline
}

func (j *joined) Close() error {
	j.once.Do(func() { j.err = errors.Join(j.w.Close(), j.r.Close()) })
	return j.err
}

// writeSide is where a connection's bytes go, for the sake of writing directly.
func writeSide(w io.Writer) io.Writer {
	if j, ok := w.(*joined); ok {
		return j.w
	}
	return w
}
