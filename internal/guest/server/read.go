package server

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

func (st *stream) read(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ReadRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	limit := r.Limit
	if limit <= 0 {
		limit = fsbridge.DefaultReadLimit
	}
	if !fsbridge.Has(b, fsbridge.CapOpenReader) {
		data, err := b.ReadFile(st.ctx, r.Path)
		if err != nil {
			return nil, err
		}
		if int64(len(data)) > limit {
			return nil, tooLarge("read", r.Path, int64(len(data)), limit)
		}
		return st.whole(data, r.Window, appendSizeHint(int64(len(data))))
	}
	src, info, err := fsbridge.OpenReader(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if info.Size > limit {
		return nil, tooLarge("read", r.Path, info.Size, limit)
	}
	c := content{st: st, path: r.Path, src: src, size: info.Size, limit: limit, window: r.Window}
	return c.send(appendSizeHint(info.Size))
}

func appendSizeHint(size int64) func([]byte) []byte {
	return func(b []byte) []byte { return binary.AppendUvarint(b, uint64(max(size, 0))) }
}

func tooLarge(op, path string, size, limit int64) error {
	return &fsbridge.PathError{
		Op: op, Path: path, Err: &fsbridge.LimitError{What: "file size", Limit: limit, Actual: size},
		Hint: "read a range, or read it as a stream",
	}
}

func (st *stream) readSource(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ReadRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	src, err := fsbridge.ReadFileWithSource(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	size := int64(len(src.Data))
	if r.Limit > 0 && size > r.Limit {
		return nil, tooLarge("read", r.Path, size, r.Limit)
	}
	return st.whole(src.Data, r.Window, func(b []byte) []byte {
		return wire.AppendSource(b, wire.Source{
			Resolved: src.ResolvedPath, Relative: src.WorkspaceRelativePath, Info: src.Info, Size: size,
		})
	})
}

func (st *stream) readRange(d *wire.Decoder) (*wire.Frame, error) {
	r := d.RangeRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	if r.N > st.s.cfg.Limits.Content {
		return nil, tooLarge("read", r.Path, r.N, st.s.cfg.Limits.Content)
	}
	data, err := fsbridge.ReadRange(st.ctx, b, r.Path, r.Off, r.N)
	if err != nil {
		return nil, err
	}
	return st.whole(data, r.Window, appendSizeHint(int64(len(data))))
}

func (st *stream) openReader(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ReadRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	src, info, err := fsbridge.OpenReader(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	c := content{st: st, path: r.Path, src: src, size: info.Size, window: r.Window}
	return c.send(func(b []byte) []byte { return wire.AppendInfo(b, info) })
}

// content is a file on its way to the peer: in one done frame where it fits, in a
// reply, data frames and a done frame with the total otherwise.
type content struct {
	st     *stream
	path   string
	src    io.Reader
	size   int64 // as it was when opened
	limit  int64 // zero: none
	window int
}

// sizeUnknown is the room for a file that claims to be empty, as those of /proc do.
const sizeUnknown = 4 << 10

func (c *content) send(head func([]byte) []byte) (*wire.Frame, error) {
	if err := c.st.allow(c.window); err != nil {
		return nil, err
	}
	// One byte more than the size, so that the end shows in the first read.
	room := int(min(max(c.size+1, sizeUnknown), wire.MaxInline))
	f := c.st.done(room + 512)
	f.B = head(f.B)
	n, end, err := fill(c.src, f.Space(room))
	if err != nil {
		f.Release()
		return nil, err
	}
	f.B = f.B[:len(f.B)+n]
	total := int64(n)
	if end {
		return f, c.check(total)
	}
	f.SetKind(wire.KindReply)
	c.st.detach()
	if err := c.st.send(c.st.ctx, f); err != nil {
		return nil, err
	}
	for !end {
		if n, end, err = c.chunk(); err != nil {
			return nil, err
		}
		total += int64(n)
		if err := c.check(total); err != nil {
			return nil, err
		}
	}
	return c.st.total(total), nil
}

// chunk reads straight into a data frame and sends it.
func (c *content) chunk() (n int, end bool, err error) {
	out := c.st.outs[wire.ChannelOut-1]
	credit, err := out.Acquire(c.st.ctx, wire.DataChunk)
	if err != nil {
		return 0, false, err
	}
	f := wire.NewData(c.st.id, wire.ChannelOut, credit)
	n, end, err = fill(c.src, f.Space(credit))
	out.Return(credit - n)
	if err != nil || n == 0 {
		f.Release()
		return 0, end, err
	}
	f.B = f.B[:len(f.B)+n]
	return n, end, c.st.send(c.st.ctx, f)
}

// fill reads until p is full or r ends. Unlike io.ReadFull it can tell an end from
// a source that fails with io.ErrUnexpectedEOF because its own transport was cut.
func fill(r io.Reader, p []byte) (n int, end bool, err error) {
	for idle := 0; n < len(p); {
		k, err := r.Read(p[n:])
		n += k
		switch {
		case err == io.EOF: // itself: a wrapped io.EOF is no end of input
			return n, true, nil
		case err != nil:
			return n, false, err
		case k > 0:
			idle = 0
		default:
			if idle++; idle > maxIdleReads {
				return n, false, io.ErrNoProgress
			}
		}
	}
	return n, false, nil
}

// maxIdleReads is how often a reader may yield nothing in a row.
const maxIdleReads = 100

func (c *content) check(total int64) error {
	if c.limit > 0 && total > c.limit {
		return tooLarge("read", c.path, total, c.limit)
	}
	return nil
}

// total is the done frame of content that was sent in parts.
func (st *stream) total(n int64) *wire.Frame {
	f := st.done(10)
	f.B = binary.AppendUvarint(f.B, uint64(n))
	return f
}

// whole sends content that is already in memory.
func (st *stream) whole(data []byte, window int, head func([]byte) []byte) (*wire.Frame, error) {
	if err := st.allow(window); err != nil {
		return nil, err
	}
	first := data[:min(len(data), wire.MaxInline)]
	f := st.done(len(first) + 512)
	f.B = append(head(f.B), first...)
	if len(first) == len(data) {
		return f, nil
	}
	f.SetKind(wire.KindReply)
	st.detach()
	if err := st.send(st.ctx, f); err != nil {
		return nil, err
	}
	if err := st.push(st.ctx, wire.ChannelOut, data[len(first):]); err != nil {
		return nil, err
	}
	return st.total(int64(len(data))), nil
}

// push sends bytes on an output channel, as credit allows.
func (st *stream) push(ctx context.Context, channel uint8, data []byte) error {
	out := st.outs[channel-1]
	for len(data) > 0 {
		n, err := out.Acquire(ctx, min(len(data), wire.DataChunk))
		if err != nil {
			return err
		}
		f := wire.NewData(st.id, channel, n)
		f.B = append(f.B, data[:n]...)
		if err := st.send(ctx, f); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
