package server

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// call answers a control call.
func (st *stream) call(d *wire.Decoder) (*wire.Frame, error) {
	r := d.CallRequest()
	if err := d.Finish(); err != nil {
		return nil, malformed(err)
	}
	if st.s.cfg.Call == nil {
		return nil, fmt.Errorf("%w: this server answers no control calls", errors.ErrUnsupported)
	}
	if err := st.allow(r.Window); err != nil {
		return nil, err
	}
	streams := Streams{
		In:  bytes.NewReader(nil),
		Out: st.output(st.ctx, wire.ChannelOut, r.Out),
		Err: st.output(st.ctx, wire.ChannelErr, r.Err),
	}
	if r.In {
		st.widen(wire.StreamWindow)
		streams.In = st.in.Reader(st.ctx)
	}
	res, err := st.s.cfg.Call(st.ctx, r.Method, r.Body, streams)
	if err != nil {
		return nil, err
	}
	if len(res) > wire.MaxBody {
		return nil, fmt.Errorf("%s: %w", r.Method, &fsbridge.LimitError{
			What: "result of a control call", Limit: wire.MaxBody, Actual: int64(len(res)),
		})
	}
	f := st.done(len(res))
	f.B = append(f.B, res...)
	return f, nil
}
