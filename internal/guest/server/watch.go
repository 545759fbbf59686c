package server

import (
	"context"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// watch reports events until the caller cancels it, which ends it well, or the
// bridge's watch ends. While there is no credit nothing is taken from the bridge,
// whose buffer then overflows into an EventOverflow.
func (st *stream) watch(d *wire.Decoder) (*wire.Frame, error) {
	r := d.WatchRequest()
	b, err := st.files(d)
	if err != nil {
		return nil, err
	}
	out, err := st.records(r.Window)
	if err != nil {
		return nil, err
	}
	w, err := fsbridge.WatchDirectory(st.ctx, b, r.Path, r.Options)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	st.releaseRequest()
	if err := st.send(st.ctx, wire.NewFrame(wire.KindReply, st.id, 0)); err != nil {
		return nil, err
	}
	for {
		select {
		case <-st.ctx.Done():
			return st.done(0), nil
		case e, ok := <-w.Events():
			if !ok {
				return out.finishPartly(watchEnd(w.Err(), st.ctx))
			}
			if err := out.events(e, w.Events()); err != nil {
				return nil, err
			}
		}
	}
}

// watchEnd is nil when the watch ended because its caller closed it.
func watchEnd(err error, ctx context.Context) error { //nolint:revive // the error is the subject
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// events sends e and what else is there already.
func (r *records) events(e fsbridge.Event, more <-chan fsbridge.Event) error {
	for {
		if err := r.add(func(b []byte) []byte { return wire.AppendEvent(b, e) }); err != nil {
			return err
		}
		select {
		case next, ok := <-more:
			if !ok {
				return r.flush()
			}
			e = next
		default:
			return r.flush()
		}
	}
}
