package server

import (
	"context"
	"io"
)

// output is where a command or a control call writes: to the peer, or nowhere if
// the peer does not want it. ctx ends the waiting for credit.
func (st *stream) output(ctx context.Context, channel uint8, wanted bool) io.Writer {
	if !wanted {
		return io.Discard
	}
	return &output{ctx: ctx, st: st, channel: channel}
}

type output struct {
	ctx     context.Context
	st      *stream
	channel uint8
}

// Write sends p as credit allows.
func (o *output) Write(p []byte) (int, error) {
	if err := o.st.push(o.ctx, o.channel, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
