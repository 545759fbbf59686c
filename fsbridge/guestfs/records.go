package guestfs

import (
	"errors"
	"io"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// errStop ends a sequence that its receiver has had enough of.
var errStop = errors.New("stop")

// records makes a call whose result is a sequence of records, in batches, and
// gives each to take, which takes it off the decoder. An error of take ends the
// call and is returned as it is.
func (r *request) records(f *wire.Frame, take func(d *wire.Decoder) error) error {
	call, err := r.start(f, client.Shape{Out: wire.BulkWindow})
	if err != nil {
		return err
	}
	call.Await(r.ctx)
	for {
		f, err := call.Output(wire.ChannelOut).Next(r.ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.cut(call, err)
		}
		err = r.batch(f.Payload()[1:], take)
		f.Release()
		if err != nil {
			call.Abandon()
			return err
		}
	}
	last, err := call.Answer(r.ctx)
	if err != nil {
		return r.giveUp(call, err)
	}
	defer last.Release()
	return r.batch(last.Payload(), take)
}

// batch decodes the records of one frame.
func (r *request) batch(payload []byte, take func(d *wire.Decoder) error) error {
	d := wire.NewDecoder(payload)
	for d.More() {
		err := take(d)
		if bad := d.Err(); bad != nil {
			return r.violated(bad)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
