package guestfs

import (
	"context"
	"errors"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// WriteFile implements fsbridge.Bridge.
func (b *Bridge) WriteFile(ctx context.Context, path string, data []byte) error {
	r, err := b.begin(ctx, wire.OpWrite, path)
	if err != nil {
		return err
	}
	head := wire.WriteRequest{
		Path: path, Plain: true, Options: fsbridge.WriteOptions{Size: int64(len(data))}, Last: len(data) <= wire.MaxInline,
	}
	return r.send(data, head.Last, head.Append, nil)
}

// CreateFileExclusive implements fsbridge.ExclusiveCreator. Keeps FSB-08.
func (b *Bridge) CreateFileExclusive(ctx context.Context, path string, data []byte) error {
	return b.whole(ctx, wire.OpCreate, path, data)
}

// AppendFile implements fsbridge.Appender.
func (b *Bridge) AppendFile(ctx context.Context, path string, data []byte) error {
	return b.whole(ctx, wire.OpAppend, path, data)
}

func (b *Bridge) whole(ctx context.Context, op wire.Op, path string, data []byte) error {
	r, err := b.begin(ctx, op, path)
	if err != nil {
		return err
	}
	head := wire.ContentRequest{Path: path, Size: int64(len(data)), Last: len(data) <= wire.MaxInline}
	return r.send(data, head.Last, head.Append, nil)
}

// WriteStream implements fsbridge.StreamWriter. The server makes the new content
// visible only after the frame that completes it. src is read on the calling
// goroutine, by a chunk ahead of what is sent.
func (b *Bridge) WriteStream(ctx context.Context, path string, src io.Reader, opts fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	none := fsbridge.WriteResult{}
	r, err := b.begin(ctx, wire.OpWrite, path)
	if err != nil {
		return none, err
	}
	if !b.has[fsbridge.CapWriteStream] {
		return none, r.refuse(&fsbridge.UnsupportedError{Capability: fsbridge.CapWriteStream})
	}
	if err := r.precondition(opts.If); err != nil {
		return none, err
	}
	if err := r.permit(); err != nil { // before anything is taken from src
		return none, r.refuse(err)
	}
	f := wire.NewFrame(wire.KindOpen, 0, firstChunk+len(path)+256)
	defer f.Release()
	n, end, err := fill(src, f.Space(firstChunk))
	if err != nil {
		return none, r.refuse(err)
	}
	first := f.B[len(f.B) : len(f.B)+n]
	var res fsbridge.WriteResult
	decode := func(d *wire.Decoder) { res = d.WriteResult() }
	head := wire.WriteRequest{Path: path, Options: opts, Last: end}
	if end {
		err = r.send(first, true, head.Append, decode)
	} else {
		err = r.stream(first, src, head.Append, decode)
	}
	if err != nil {
		return none, err
	}
	if res.Digest == "" {
		return none, r.violated(wire.Violation("result of a write without a digest"))
	}
	return res, nil
}

// firstChunk is how much of a source is read before anything is sent: a source
// that ends within it costs one round trip.
const firstChunk = 64 << 10

// send makes a call with content that is in memory: in one frame, or the
// beginning in the request and the rest behind it.
func (r *request) send(data []byte, last bool, head func([]byte) []byte, decode func(*wire.Decoder)) error {
	if last {
		f := wire.NewOpen(r.op, len(r.path)+len(data)+256)
		f.B = append(head(f.B), data...)
		return r.do(f, decode)
	}
	return r.upload(data[:wire.MaxInline], &memory{rest: data[wire.MaxInline:]}, head, decode)
}

// stream is upload from a reader.
func (r *request) stream(first []byte, src io.Reader, head func([]byte) []byte, decode func(*wire.Decoder)) error {
	return r.upload(first, &streamed{src: src}, head, decode)
}

// chunks yields content frame by frame.
type chunks interface {
	// next reads at most n bytes into f. end is true when nothing is left.
	next(f *wire.Frame, n int) (end bool, err error)
}

type memory struct{ rest []byte }

func (m *memory) next(f *wire.Frame, n int) (bool, error) {
	n = min(n, len(m.rest))
	f.B = append(f.B, m.rest[:n]...)
	m.rest = m.rest[n:]
	return len(m.rest) == 0, nil
}

type streamed struct{ src io.Reader }

func (s *streamed) next(f *wire.Frame, n int) (bool, error) {
	n, end, err := fill(s.src, f.Space(n))
	f.B = f.B[:len(f.B)+n]
	return end, err
}

// upload makes a call whose content follows its request.
func (r *request) upload(first []byte, rest chunks, head func([]byte) []byte, decode func(*wire.Decoder)) error {
	f := wire.NewOpen(r.op, len(r.path)+len(first)+256)
	f.B = append(head(f.B), first...)
	call, err := r.start(f, client.Shape{Content: true})
	if err != nil {
		return err
	}
	answer, err := r.feed(call, rest)
	if err != nil {
		return err
	}
	defer answer.Release()
	return r.decode(answer.Payload(), decode)
}

// feed sends the content and waits for the answer. Keeps FSB-10 to FSB-12: what
// fails the guard, ctx or the source on the way cancels the call, and since the
// server changes nothing before the content is complete, the old file stays.
func (r *request) feed(call *client.Call, rest chunks) (*wire.Frame, error) {
	for end := false; !end; {
		room, err := call.Room(r.ctx, wire.DataChunk)
		if err != nil {
			return r.answer(call) // answered already, lost, or cancelled
		}
		f := call.Data(room)
		before := len(f.B)
		end, err = rest.next(f, room)
		call.Return(room - (len(f.B) - before))
		if err == nil {
			err = r.permit()
		}
		if err != nil {
			f.Release()
			return nil, r.abort(call, err)
		}
		if len(f.B) == before {
			f.Release()
			continue
		}
		if err := call.Send(r.ctx, f); err != nil {
			return r.answer(call)
		}
	}
	if err := r.permit(); err != nil {
		return nil, r.abort(call, err)
	}
	_ = call.End(r.ctx) // a failure shows in the answer
	return r.answer(call)
}

func (r *request) answer(call *client.Call) (*wire.Frame, error) {
	f, err := call.Answer(r.ctx)
	if err != nil {
		return nil, r.fail(err)
	}
	return f, nil
}

// abort cancels a write whose content is not complete, waits for the server to
// have cleaned up, and returns cause. Without an answer the outcome is unknown.
func (r *request) abort(call *client.Call, cause error) error {
	f, err := call.Settle(cause)
	if err == nil {
		f.Release()
		return r.violated(wire.Violation("an incomplete write was answered with success"))
	}
	var lost *client.LostError
	if errors.As(err, &lost) {
		lost.Err = errors.Join(cause, lost.Err)
		return r.fail(lost)
	}
	return r.refuse(cause)
}

// maxIdleReads is how often a reader may yield nothing in a row.
const maxIdleReads = 100

// fill reads until p is full or r ends.
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
