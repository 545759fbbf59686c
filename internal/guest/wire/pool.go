package wire

import "sync"

// frameSlack is room beyond a round size: header, channel, and the fields that
// go before content.
const frameSlack = 8 << 10

// The size classes of frames. What is in a pool carries no state from one use to
// the next.
var classes = [...]struct {
	size int
	pool *sync.Pool
}{
	{512, new(sync.Pool)},
	{16 << 10, new(sync.Pool)},
	{40 << 10, new(sync.Pool)},
	{DataChunk + frameSlack, new(sync.Pool)},
	{MaxInline + frameSlack, new(sync.Pool)},
	{MaxFrame + 4, new(sync.Pool)},
}

// getFrame returns a frame with a buffer of at least size bytes.
func getFrame(size int) *Frame {
	for i, c := range classes {
		if size > c.size {
			continue
		}
		if f, ok := c.pool.Get().(*Frame); ok {
			return f
		}
		return &Frame{B: make([]byte, c.size), class: i}
	}
	return &Frame{B: make([]byte, size), class: len(classes)}
}

// putFrame keeps the frame for reuse, unless it has outgrown its class.
func putFrame(f *Frame) {
	if f.class < len(classes) && cap(f.B) <= classes[f.class].size+frameSlack {
		classes[f.class].pool.Put(f)
	}
}
