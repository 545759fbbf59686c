package sandbox

import (
	"context"
	"sync"
)

// Limits of kept output, in bytes per stream.
const (
	DefaultOutputLimit = 1 << 20
	MaxOutputLimit     = 1 << 30
)

// Output is what was kept of a stream: its beginning, its end, and the number of
// bytes between them that were dropped.
type Output struct {
	Head []byte
	// Tail is empty unless something was dropped.
	Tail []byte
	// Total is the number of bytes the command wrote.
	Total int64
	// Dropped is Total less what was kept.
	Dropped int64
}

// Bytes is everything when nothing was dropped, otherwise head and tail put
// together: look at Dropped.
func (o Output) Bytes() []byte {
	if len(o.Tail) == 0 {
		return o.Head
	}
	return append(append(make([]byte, 0, len(o.Head)+len(o.Tail)), o.Head...), o.Tail...)
}

// Truncated reports whether bytes were dropped.
func (o Output) Truncated() bool { return o.Dropped > 0 }

// OutputBuffer keeps the beginning and the end of a stream in bounded memory. Readers
// have cursors: absolute offsets in the stream, so that several may follow it and each
// learns exactly what it missed. Safe for concurrent use.
type OutputBuffer struct {
	headLimit, tailLimit int

	mu      sync.Mutex
	head    []byte
	tail    []byte // a ring once it is full
	start   int    // index in tail of its oldest byte
	total   int64
	ended   bool
	changed chan struct{} // closed at the next change; nil when nobody waits
}

// NewOutputBuffer makes a buffer that keeps about limit bytes: the first half as the
// beginning, the second as the end. Zero means DefaultOutputLimit. Memory is taken as
// it is needed.
func NewOutputBuffer(limit int) *OutputBuffer {
	if limit <= 0 {
		limit = DefaultOutputLimit
	}
	limit = max(2, min(limit, MaxOutputLimit))
	return &OutputBuffer{headLimit: limit / 2, tailLimit: limit - limit/2}
}

// Write keeps what fits. It never fails and never waits.
func (b *OutputBuffer) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return n, nil
	}
	b.total += int64(n)
	if room := b.headLimit - len(b.head); room > 0 {
		k := min(room, len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
	}
	b.keepTail(p)
	b.signal()
	return n, nil
}

// keepTail adds p to the end.
func (b *OutputBuffer) keepTail(p []byte) {
	if len(p) >= b.tailLimit {
		b.tail = append(b.tail[:0], p[len(p)-b.tailLimit:]...)
		b.start = 0
		return
	}
	if room := b.tailLimit - len(b.tail); room > 0 {
		k := min(room, len(p))
		b.tail = append(b.tail, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(b.tail[b.start:], p)
		b.start = (b.start + k) % len(b.tail)
		p = p[k:]
	}
}

// End says that nothing more will come; later writes are dropped unseen.
func (b *OutputBuffer) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.signal()
	}
}

// signal wakes everybody who waits.
func (b *OutputBuffer) signal() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Chunk is a piece of a stream.
type Chunk struct {
	// Data begins at Offset.
	Data   []byte `json:"data"`
	Offset int64  `json:"offset"`
	// Next is the cursor to go on with.
	Next int64 `json:"next"`
	// Dropped is the number of bytes between the cursor and Offset that are gone.
	Dropped int64 `json:"dropped,omitempty"`
	// End is true when the stream has ended and Next is its end.
	End bool `json:"end"`
}

// Read returns at most most bytes from the cursor on, at once; zero means all there
// is. A cursor before the beginning counts as 0, one behind the end waits there.
func (b *OutputBuffer) Read(cursor int64, most int) Chunk {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read(cursor, most)
}

func (b *OutputBuffer) read(cursor int64, most int) Chunk {
	cursor = min(max(cursor, 0), b.total)
	c := Chunk{Offset: cursor}
	tailAt := b.total - int64(len(b.tail))
	if cursor >= int64(len(b.head)) && cursor < tailAt {
		c.Offset, c.Dropped = tailAt, tailAt-cursor
	}
	if c.Offset < int64(len(b.head)) {
		part := b.head[c.Offset:]
		if most > 0 && len(part) > most {
			part = part[:most]
		}
		c.Data = append([]byte(nil), part...)
	}
	c.Next = c.Offset + int64(len(c.Data))
	// The end follows the beginning directly as long as nothing was dropped.
	if c.Next >= tailAt && (most <= 0 || len(c.Data) < most) {
		from := int(c.Next - tailAt)
		k := len(b.tail) - from
		if most > 0 {
			k = min(k, most-len(c.Data))
		}
		for i := 0; i < k; {
			at := (b.start + from + i) % len(b.tail)
			n := min(k-i, len(b.tail)-at)
			c.Data = append(c.Data, b.tail[at:at+n]...)
			i += n
		}
		c.Next += int64(k)
	}
	c.End = b.ended && c.Next == b.total
	return c
}

// Follow is Read, but waits until there is something from the cursor on, the stream
// has ended, or ctx has: then with its error.
func (b *OutputBuffer) Follow(ctx context.Context, cursor int64, most int) (Chunk, error) {
	for {
		b.mu.Lock()
		if b.total > max(cursor, 0) || b.ended {
			defer b.mu.Unlock()
			return b.read(cursor, most), nil
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Chunk{Offset: cursor, Next: cursor}, ctx.Err()
		}
	}
}

// Total is the number of bytes written so far.
func (b *OutputBuffer) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Output returns what is kept. Beginning and end are joined in Head as long as nothing
// was dropped.
func (b *OutputBuffer) Output() Output {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := Output{Total: b.total}
	tail := make([]byte, 0, len(b.tail))
	tail = append(append(tail, b.tail[b.start:]...), b.tail[:b.start]...)
	o.Dropped = b.total - int64(len(b.head)+len(tail))
	o.Head = append(make([]byte, 0, len(b.head)), b.head...)
	if o.Dropped == 0 {
		o.Head = append(o.Head, tail...)
	} else {
		o.Tail = tail
	}
	return o
}
