package sshtest

import (
	"bytes"
	"context"
	"sync"
)

// logBuffer keeps what a server writes and lets a reader wait for it.
type logBuffer struct {
	mu    sync.Mutex
	data  bytes.Buffer
	grown chan struct{} // closed at the next write
}

func newLogBuffer() *logBuffer { return &logBuffer{grown: make(chan struct{})} }

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.grown)
	l.grown = make(chan struct{})
	return l.data.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

// waitFor waits until the log has the text. It reports whether that came before the end of ctx.
func (l *logBuffer) waitFor(ctx context.Context, text string) bool {
	for {
		l.mu.Lock()
		found, grown := bytes.Contains(l.data.Bytes(), []byte(text)), l.grown
		l.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return false
		}
	}
}
