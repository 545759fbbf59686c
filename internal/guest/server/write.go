package server

import (
	"bytes"
	"fmt"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

func (st *stream) write(d *wire.Decoder) (*wire.Frame, error) {
	r := d.WriteRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	if r.Plain {
		return st.empty(st.writeFile(b, r))
	}
	res, err := fsbridge.WriteStream(st.ctx, b, r.Path, st.body(r.Data, r.Last), r.Options)
	if err != nil {
		return nil, err
	}
	f := st.done(96)
	f.B = wire.AppendWriteResult(f.B, res)
	return f, nil
}

// writeFile replaces a file by the method every bridge has, or in constant memory
// where the content did not come at once and the bridge can.
func (st *stream) writeFile(b fsbridge.Bridge, r wire.WriteRequest) error {
	if r.Last {
		return b.WriteFile(st.ctx, r.Path, r.Data)
	}
	if fsbridge.Has(b, fsbridge.CapWriteStream) {
		_, err := fsbridge.WriteStream(st.ctx, b, r.Path, st.body(r.Data, false),
			fsbridge.WriteOptions{Size: r.Options.Size})
		return err
	}
	data, err := st.gather(r.Data, false, r.Options.Size)
	if err != nil {
		return &fsbridge.PathError{Op: "write", Path: r.Path, Err: err}
	}
	return b.WriteFile(st.ctx, r.Path, data)
}

func (st *stream) create(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ContentRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	data, err := st.gather(r.Data, r.Last, r.Size)
	if err != nil {
		return nil, &fsbridge.PathError{Op: "create", Path: r.Path, Err: err}
	}
	return st.empty(fsbridge.CreateFileExclusive(st.ctx, b, r.Path, data))
}

func (st *stream) append(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ContentRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	data, err := st.gather(r.Data, r.Last, r.Size)
	if err != nil {
		return nil, &fsbridge.PathError{Op: "append", Path: r.Path, Err: err}
	}
	return st.empty(fsbridge.AppendFile(st.ctx, b, r.Path, data))
}

// gather takes content into memory: exactly size bytes, of which first are here.
func (st *stream) gather(first []byte, last bool, size int64) ([]byte, error) {
	if limit := st.s.cfg.Limits.Content; size > limit {
		return nil, &fsbridge.LimitError{What: "content of one call", Limit: limit, Actual: size}
	}
	if last {
		return first, nil
	}
	data := bytes.NewBuffer(make([]byte, 0, min(size, wire.BulkWindow)))
	// One byte more than promised shows a promise that was not kept.
	n, err := io.Copy(data, io.LimitReader(st.body(first, false), size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("content is not of the announced size of %d bytes: %w", size, fsbridge.ErrInvalid)
	}
	return data.Bytes(), nil
}

// body is the content of a write: what came with the request and, unless that was
// all, what follows on ChannelIn.
func (st *stream) body(first []byte, last bool) io.Reader {
	if last {
		return bytes.NewReader(first)
	}
	st.detach()
	st.widen(wire.BulkWindow)
	return &body{first: first, rest: st.in.Reader(st.ctx)}
}

type body struct {
	first []byte
	rest  *mux.Reader
}

// Read gives the first bytes and then the rest.
func (b *body) Read(p []byte) (int, error) {
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.rest.Read(p)
}

// WriteTo saves a copy of everything.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	var total int64
	if len(b.first) > 0 {
		n, err := w.Write(b.first)
		total, b.first = int64(n), b.first[n:]
		if err != nil {
			return total, err
		}
	}
	n, err := b.rest.WriteTo(w)
	return total + n, err
}
