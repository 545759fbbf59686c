package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// StreamError reports a stream of the caller that failed and so ended the command.
type StreamError struct {
	// Stream is "stdin", "stdout" or "stderr".
	Stream string
	Err    error
}

// Error gives one line.
func (e *StreamError) Error() string { return fmt.Sprintf("%s failed: %v", e.Stream, e.Err) }

// Unwrap returns what the stream said.
func (e *StreamError) Unwrap() error { return e.Err }

// guardStreams makes a failing stream end the command by calling fail, and cuts
// the writers off when done is closed.
func guardStreams(streams IO, fail context.CancelCauseFunc, done <-chan struct{}) IO {
	out := IO{
		Stdout: guardWriter(streams.Stdout, "stdout", fail, done),
		Stderr: guardWriter(streams.Stderr, "stderr", fail, done),
	}
	if streams.Stdin != nil {
		out.Stdin = &guardedReader{r: streams.Stdin, fail: fail}
	}
	// One writer for both keeps being one: its writes must not overlap.
	if streams.Stdout != nil && sameWriter(streams.Stdout, streams.Stderr) {
		out.Stderr = out.Stdout
	}
	return out
}

// guardedReader reports a failing reader.
type guardedReader struct {
	r    io.Reader
	fail context.CancelCauseFunc
}

// Read hands the failure on too: the command must not take it for the end.
func (g *guardedReader) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		g.fail(&StreamError{Stream: "stdin", Err: err})
	}
	return n, err
}

// guardedWriter reports a failing writer and discards from then on, so that the
// backend is not held up by it. Writes do not overlap.
type guardedWriter struct {
	w    io.Writer
	name string
	fail context.CancelCauseFunc
	done <-chan struct{}

	mu     sync.Mutex
	broken bool
}

func guardWriter(w io.Writer, name string, fail context.CancelCauseFunc, done <-chan struct{}) io.Writer {
	if w == nil {
		return io.Discard
	}
	return &guardedWriter{w: w, name: name, fail: fail, done: done}
}

func (g *guardedWriter) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.done:
		return len(p), nil
	default:
	}
	if g.broken {
		return len(p), nil
	}
	if n, err := g.w.Write(p); err != nil || n < len(p) {
		g.broken = true
		if err == nil {
			err = io.ErrShortWrite
		}
		g.fail(&StreamError{Stream: g.name, Err: err})
	}
	return len(p), nil
}

// sameWriter compares two writers; values that cannot be compared are different.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return a == b
}
