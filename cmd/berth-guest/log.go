//go:build linux

package main

import (
	"io"
	"log/slog"
	"sync"
)

// logBytes is how much the helper logs in its life. It is less than a pipe holds,
// so that a host that does not read the helper's error output cannot block it, and
// a command that provokes messages cannot flood it.
const logBytes = 32 << 10

// newLogger returns the logger of a helper, which writes what people must know.
func newLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(&boundedWriter{w: w, left: logBytes}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// boundedWriter passes on so many bytes, in whole messages, says that there would
// be more, and drops the rest.
type boundedWriter struct {
	w io.Writer

	mu   sync.Mutex
	left int // negative once something was dropped
}

// Write never fails: who logs could do nothing about it.
func (b *boundedWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.left < 0:
	case len(p) > b.left:
		b.left = -1
		_, _ = io.WriteString(b.w, "berth-guest: further messages are dropped\n")
	default:
		b.left -= len(p)
		_, _ = b.w.Write(p)
	}
	return len(p), nil
}
