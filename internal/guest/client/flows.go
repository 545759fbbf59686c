package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/wire"
)

// drain writes everything that comes on a channel to w until the channel ends.
// When w fails the rest is thrown away, failed is told, and the error returned:
// the server must not be held up by output nobody wants.
func drain(in *mux.Inflow, w io.Writer, failed func()) error {
	var broken error
	for {
		f, err := in.Next(context.Background())
		if err != nil {
			return broken // the end, or that of the connection, which others report
		}
		data := f.Payload()[1:]
		if broken == nil {
			n, err := w.Write(data)
			if err == nil && n < len(data) {
				err = io.ErrShortWrite
			}
			if err != nil {
				broken = err
				failed()
			}
		}
		f.Release()
	}
}

// feed sends what r yields as a call's content, and then its end. It stops
// without an error when the call is over. The error is that of r.
func (call *Call) feed(r io.Reader) error {
	ctx := context.Background()
	for {
		room, err := call.Room(ctx, wire.DataChunk)
		if err != nil {
			return nil //nolint:nilerr // the call is over; Answer tells how
		}
		f := call.Data(min(room, feedChunk))
		n, err := r.Read(f.Space(min(room, feedChunk)))
		call.Return(room - n)
		if n > 0 {
			f.B = f.B[:len(f.B)+n]
			if call.Send(ctx, f) != nil {
				return nil
			}
		} else {
			f.Release()
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = call.End(ctx)
			return nil
		case err != nil:
			return fmt.Errorf("reading the input: %w", err)
		}
	}
}

// feedChunk is what is read from an input at a time: as much as makes a frame of 32 KiB, which
// an SSH connection carries in one packet. One byte more would cost a packet of its own.
const feedChunk = 32<<10 - wire.HeaderSize - 1
