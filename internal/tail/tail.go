// Package tail keeps the end of what a program says on its error output, to be told when it fails.
package tail

import (
	"fmt"
	"strings"
	"sync"
)

// Buffer keeps what is written, or the last Limit bytes of it. It is safe for concurrent use.
type Buffer struct {
	// Limit is how much is kept, in bytes; zero keeps all of it. It is set before the first Write.
	Limit int

	mu   sync.Mutex
	data []byte
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if n := len(b.data) - b.Limit; n > 0 && b.Limit > 0 {
		b.data = append(b.data[:0], b.data[n:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}

// Line is the last line, quoted, of which at most so many bytes; zero means all of it. It is empty where
// there is none.
func (b *Buffer) Line(most int) string {
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	if most > 0 && len(last) > most {
		last = last[:most] + "..."
	}
	return fmt.Sprintf("%+q", last)
}
