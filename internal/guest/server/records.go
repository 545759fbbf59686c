package server

import (
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// flushAfter is how long a record may wait for others to share its frame.
const flushAfter = 20 * time.Millisecond

// records sends a sequence of records in batches: data frames on ChannelOut, the
// last ones in the done frame. A short sequence is one frame.
type records struct {
	st    *stream
	batch *wire.Frame
	since time.Time // of the first record in batch
}

func (st *stream) records(window int) (*records, error) {
	if err := st.allow(window); err != nil {
		return nil, err
	}
	return &records{st: st}, nil
}

// add appends a record that may have to wait for others.
func (r *records) add(record func([]byte) []byte) error {
	if err := r.put(record); err != nil || r.batch == nil || time.Since(r.since) < flushAfter {
		return err
	}
	return r.flush()
}

// put appends a record of a sequence that is at hand.
func (r *records) put(record func([]byte) []byte) error {
	if r.batch == nil {
		r.batch = wire.NewData(r.st.id, wire.ChannelOut, 8<<10)
		r.since = time.Now()
	}
	r.batch.B = record(r.batch.B)
	if len(r.batch.B) < wire.BatchBytes {
		return nil
	}
	return r.flush()
}

// flush sends what was added, as soon as there is credit for all of it.
func (r *records) flush() error {
	f := r.batch
	if f == nil {
		return nil
	}
	r.batch = nil
	r.st.detach()
	out := r.st.outs[wire.ChannelOut-1]
	for need := len(f.Payload()) - 1; need > 0; {
		n, err := out.Acquire(r.st.ctx, need)
		if err != nil {
			f.Release()
			return err
		}
		need -= n
	}
	return r.st.send(r.st.ctx, f)
}

// finish is the answer to the call: the last batch, or the error.
func (r *records) finish(err error) (*wire.Frame, error) {
	f := r.st.done(0)
	if r.batch != nil {
		f.B = append(f.B, r.batch.Payload()[1:]...)
		r.batch.Release()
		r.batch = nil
	}
	return f, err
}

func (st *stream) list(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ListRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	out, err := st.records(r.Window)
	if err != nil {
		return nil, err
	}
	entries, err := fsbridge.ReadDirectory(st.ctx, b, r.Path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := out.put(func(b []byte) []byte { return wire.AppendDirEntry(b, e) }); err != nil {
			return nil, err
		}
	}
	return out.finish(nil)
}

func (st *stream) listStream(d *wire.Decoder) (*wire.Frame, error) {
	r := d.ListRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	out, err := st.records(r.Window)
	if err != nil {
		return nil, err
	}
	for e, err := range fsbridge.StreamDirectory(st.ctx, b, r.Path) {
		if err != nil {
			return out.finish(err)
		}
		if err := out.add(func(b []byte) []byte { return wire.AppendDirEntry(b, e) }); err != nil {
			return nil, err
		}
	}
	return out.finish(nil)
}

func (st *stream) walk(d *wire.Decoder) (*wire.Frame, error) {
	r := d.WalkRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	out, err := st.records(r.Window)
	if err != nil {
		return nil, err
	}
	err = fsbridge.Walk(st.ctx, b, r.Path, r.Options, func(e fsbridge.WalkEntry) error {
		return out.add(func(b []byte) []byte { return wire.AppendWalkEntry(b, e) })
	})
	return out.finishPartly(err)
}

// finishPartly is finish for sequences of which the caller has a use also when
// they end with an error: what was found goes before it.
func (r *records) finishPartly(err error) (*wire.Frame, error) {
	if err != nil {
		if failed := r.flush(); failed != nil {
			return nil, failed
		}
	}
	return r.finish(err)
}

func (st *stream) glob(d *wire.Decoder) (*wire.Frame, error) {
	r := d.GlobRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	out, err := st.records(r.Window)
	if err != nil {
		return nil, err
	}
	matches, err := fsbridge.Glob(st.ctx, b, r.Pattern, r.Options)
	if err != nil {
		return nil, err
	}
	for _, m := range matches {
		if err := out.put(func(b []byte) []byte { return wire.AppendString(b, m) }); err != nil {
			return nil, err
		}
	}
	return out.finish(nil)
}
