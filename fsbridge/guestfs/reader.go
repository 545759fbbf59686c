package guestfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// OpenReader implements fsbridge.StreamReader. The server reads ahead by at most
// wire.BulkWindow bytes. Each Read looks at the guard first.
func (b *Bridge) OpenReader(ctx context.Context, path string) (io.ReadCloser, fsbridge.FileInfo, error) {
	r, err := b.begin(ctx, wire.OpOpenReader, path)
	if err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(ctx)
	f, info, err := r.open(cancel)
	if err != nil {
		cancel()
		return nil, fsbridge.FileInfo{}, err
	}
	return f, info, nil
}

func (r *request) open(cancel context.CancelFunc) (*reader, fsbridge.FileInfo, error) {
	call, err := r.start(readFrame(r.op, r.path, 0), client.Shape{Reply: true, Out: wire.BulkWindow})
	if err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	first, done, err := call.First(r.ctx)
	if err != nil {
		return nil, fsbridge.FileInfo{}, r.giveUp(call, err)
	}
	d := wire.NewDecoder(first.Payload())
	info := d.Info()
	begin := d.Rest()
	if err := d.Err(); err != nil {
		first.Release()
		return nil, fsbridge.FileInfo{}, r.violated(err)
	}
	info.Name = base(r.path)
	return &reader{r: r, call: call, cancel: cancel, cur: first, data: begin, whole: done}, info, nil
}

// reader is a stream of a file's content.
type reader struct {
	r      *request
	call   *client.Call
	cancel context.CancelFunc

	mu    sync.Mutex
	cur   *wire.Frame // what data lies in
	data  []byte      // not yet read
	read  int64
	whole bool  // nothing follows data
	err   error // for good
}

var (
	_ io.ReadCloser = (*reader)(nil)
	_ io.WriterTo   = (*reader)(nil)
)

// Read implements io.Reader.
func (f *reader) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.fillLocked(); err != nil {
		return 0, err
	}
	n := copy(p, f.data)
	f.takeLocked(n)
	return n, nil
}

// WriteTo implements io.WriterTo, which saves a copy.
func (f *reader) WriteTo(w io.Writer) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var total int64
	for {
		if err := f.fillLocked(); err != nil {
			if err == io.EOF { //nolint:errorlint // our own
				return total, nil
			}
			return total, err
		}
		n, err := w.Write(f.data)
		total += int64(n)
		if err == nil && n < len(f.data) {
			err = io.ErrShortWrite
		}
		f.takeLocked(n)
		if err != nil {
			return total, err
		}
	}
}

// fillLocked makes data not empty, or fails.
func (f *reader) fillLocked() error {
	if f.err != nil {
		return f.err
	}
	if err := f.r.permit(); err != nil {
		return f.endLocked(f.r.refuse(err))
	}
	for len(f.data) == 0 {
		if f.whole {
			return f.endLocked(io.EOF)
		}
		next, err := f.call.Output(wire.ChannelOut).Next(f.r.ctx)
		switch {
		case errors.Is(err, io.EOF):
			if err := f.r.total(f.call, f.read); err != nil {
				return f.endLocked(err)
			}
			f.whole = true
		case err != nil:
			return f.endLocked(f.r.cut(f.call, err))
		default:
			f.cur, f.data = next, next.Payload()[1:]
		}
	}
	return nil
}

// takeLocked marks n bytes of data as read.
func (f *reader) takeLocked(n int) {
	f.read += int64(n)
	if f.data = f.data[n:]; len(f.data) == 0 && f.cur != nil {
		f.cur.Release()
		f.cur = nil
	}
}

// endLocked makes err the answer to every further Read.
func (f *reader) endLocked(err error) error {
	f.err, f.data = err, nil
	if f.cur != nil {
		f.cur.Release()
		f.cur = nil
	}
	if !f.whole {
		f.call.Abandon()
	}
	f.cancel()
	return err
}

// Close ends the stream. A Read that waits returns.
func (f *reader) Close() error {
	f.cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	closed := &fsbridge.PathError{Op: f.r.op.String(), Path: f.r.path, Err: fs.ErrClosed}
	if errors.Is(f.err, fs.ErrClosed) {
		return closed
	}
	if f.err == nil {
		_ = f.endLocked(closed)
	}
	f.err = closed
	return nil
}
