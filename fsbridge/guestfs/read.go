package guestfs

import (
	"context"
	"errors"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// ReadFile implements fsbridge.Bridge.
func (b *Bridge) ReadFile(ctx context.Context, path string) ([]byte, error) {
	r, err := b.begin(ctx, wire.OpRead, path)
	if err != nil {
		return nil, err
	}
	var size int64
	return r.content(readFrame(r.op, path, b.opts.ReadLimit), b.opts.ReadLimit,
		func(d *wire.Decoder) int64 { size = d.Size(); return size })
}

func readFrame(op wire.Op, path string, limit int64) *wire.Frame {
	f := wire.NewOpen(op, len(path)+24)
	f.B = wire.ReadRequest{Path: path, Limit: limit, Window: wire.BulkWindow}.Append(f.B)
	return f
}

// ReadFileWithSource implements fsbridge.SourceReader. The location must lie in
// the mount table, and the path in the workspace must be what the table makes of
// it. Keeps FSB-03 to FSB-06.
func (b *Bridge) ReadFileWithSource(ctx context.Context, path string) (fsbridge.SourcedFile, error) {
	r, err := b.begin(ctx, wire.OpReadSource, path)
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	var src wire.Source
	data, err := r.content(readFrame(r.op, path, b.opts.ReadLimit), b.opts.ReadLimit,
		func(d *wire.Decoder) int64 { src = d.Source(); return src.Size })
	if err != nil {
		return fsbridge.SourcedFile{}, err
	}
	if err := checkSource(b.mounts, src, int64(len(data))); err != nil {
		return fsbridge.SourcedFile{}, r.violated(err)
	}
	src.Info.Name = base(path)
	return fsbridge.SourcedFile{
		Data: data, ResolvedPath: src.Resolved, WorkspaceRelativePath: src.Relative, Info: src.Info,
	}, nil
}

// checkSource compares a location with the mount table, where there is one.
func checkSource(mounts fsbridge.MountTable, src wire.Source, size int64) error {
	quoted := wire.Printable(src.Resolved, wire.MaxQuote)
	switch {
	case src.Size != size:
		return wire.Violation("pinned read of %d bytes with %d bytes of content", src.Size, size)
	case src.Info.Type != fsbridge.TypeRegular:
		return wire.Violation("pinned read of a %s", src.Info.Type)
	case mounts == nil:
		return nil
	}
	m, rest, ok := mounts.Find(src.Resolved)
	if !ok {
		return wire.Violation("location %q outside the mounts", quoted)
	}
	want := ""
	if m.Kind == fsbridge.MountWorkspace {
		want = rest
	}
	if src.Relative != want {
		return wire.Violation("location %q with %q in the workspace", quoted, wire.Printable(src.Relative, wire.MaxQuote))
	}
	return nil
}

// ReadRange implements fsbridge.RangeReader.
func (b *Bridge) ReadRange(ctx context.Context, path string, off, n int64) ([]byte, error) {
	r, err := b.begin(ctx, wire.OpReadRange, path)
	if err != nil {
		return nil, err
	}
	if n > b.opts.ReadLimit && off >= 0 {
		return nil, &fsbridge.PathError{
			Op: r.op.String(), Path: path, Hint: "read it in smaller ranges",
			Err: &fsbridge.LimitError{What: "range", Limit: b.opts.ReadLimit, Actual: n},
		}
	}
	f := wire.NewOpen(r.op, len(path)+32)
	f.B = wire.RangeRequest{Path: path, Off: off, N: n, Window: wire.BulkWindow}.Append(f.B)
	return r.content(f, max(n, 0), func(d *wire.Decoder) int64 { return d.Size() })
}

// content makes a call whose result is content after a head, at most limit bytes.
// head decodes the head and returns the expected size, which is only a hint.
func (r *request) content(f *wire.Frame, limit int64, head func(d *wire.Decoder) int64) ([]byte, error) {
	call, err := r.start(f, client.Shape{Reply: true, Out: wire.BulkWindow})
	if err != nil {
		return nil, err
	}
	first, done, err := call.First(r.ctx)
	if err != nil {
		return nil, r.giveUp(call, err)
	}
	defer first.Release()
	d := wire.NewDecoder(first.Payload())
	size := head(d)
	begin := d.Rest()
	if err := d.Err(); err != nil {
		return nil, r.violated(err)
	}
	if int64(len(begin)) > limit {
		call.Abandon()
		return nil, r.tooLarge(limit)
	}
	if done {
		return append(make([]byte, 0, len(begin)), begin...), nil
	}
	return r.collect(call, begin, size, limit)
}

// collect gathers content that comes in parts.
func (r *request) collect(call *client.Call, begin []byte, size, limit int64) ([]byte, error) {
	size = min(size, limit)
	data := append(make([]byte, 0, room(int64(len(begin)), size)), begin...)
	for {
		f, err := call.Output(wire.ChannelOut).Next(r.ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, r.cut(call, err)
		}
		part := f.Payload()[1:]
		if int64(len(data)+len(part)) > limit {
			f.Release()
			call.Abandon()
			return nil, r.tooLarge(limit)
		}
		if len(data)+len(part) > cap(data) {
			data = append(make([]byte, 0, room(int64(len(data)+len(part)), size)), data...)
		}
		data = append(data, part...)
		f.Release()
	}
	if err := r.total(call, int64(len(data))); err != nil {
		return nil, err
	}
	return data, nil
}

// room is the capacity to make for content of which so much has arrived: what the
// server announced, but never much more than it has proven.
func room(arrived, announced int64) int64 {
	const proven = 8
	return max(arrived, min(announced, arrived*proven))
}

// total takes the last frame of content that came in parts, and compares.
func (r *request) total(call *client.Call, got int64) error {
	f, err := call.Answer(r.ctx)
	if err != nil {
		return r.giveUp(call, err)
	}
	defer f.Release()
	var total int64
	if err := r.decode(f.Payload(), func(d *wire.Decoder) { total = d.Size() }); err != nil {
		return err
	}
	if total != got {
		return r.violated(wire.Violation("content of %d bytes ended after %d", total, got))
	}
	return nil
}

// giveUp ends a call that reads because of err, with which it was answered, or not
// answered. What the server still sends for it is dropped.
func (r *request) giveUp(call *client.Call, err error) error {
	if r.ctx.Err() != nil && errors.Is(err, r.ctx.Err()) {
		call.Abandon()
	}
	return r.fail(err)
}

// cut ends a call whose output ended with err: that of ctx, or of the connection.
func (r *request) cut(call *client.Call, err error) error {
	if lost := r.b.conn.Err(); lost != nil && (r.ctx.Err() == nil || !errors.Is(err, r.ctx.Err())) {
		err = &client.LostError{Sent: true, Err: lost}
	}
	return r.giveUp(call, err)
}

func (r *request) tooLarge(limit int64) error {
	return &fsbridge.PathError{
		Op: r.op.String(), Path: r.path, Hint: "read a range, or read it as a stream",
		Err: &fsbridge.LimitError{What: "file size", Limit: limit},
	}
}
