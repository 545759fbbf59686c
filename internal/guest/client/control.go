package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Streams are the data of a control call beside its body. Nil fields are unused.
// Call does not return while it reads or writes one of them, with one exception:
// it does not wait for a Read of In that is blocked when the call is over.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Call makes a control call: a method of the server's owner with in as its body
// in JSON. The result's JSON is put into out, unless out is nil. A writer of
// streams that fails, and a reader, cancel the call.
func (c *Conn) Call(ctx context.Context, method string, in, out any, streams Streams) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if len(body) > wire.MaxBody || len(method) > wire.MaxWord {
		return fmt.Errorf("%s: %w", wire.Printable(method, wire.MaxWord), &fsbridge.LimitError{
			What: "body of a control call", Limit: wire.MaxBody, Actual: int64(len(body)),
		})
	}
	request := wire.CallRequest{
		Method: method, In: streams.In != nil, Out: streams.Out != nil, Err: streams.Err != nil,
		Window: wire.StreamWindow, Body: body,
	}
	f := wire.NewOpen(wire.OpCall, len(body)+len(method)+16)
	f.B = request.Append(f.B)
	shape := Shape{Content: request.In}
	if request.Out {
		shape.Out = request.Window
	}
	if request.Err {
		shape.Err = request.Window
	}
	call, err := c.Start(ctx, f, shape)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	answer, err := call.stream(ctx, streams)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer answer.Release()
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Payload(), out); err != nil {
		return fmt.Errorf("%s: malformed result: %w", method, err)
	}
	return nil
}

// stream moves the call's streams until it ends.
func (call *Call) stream(ctx context.Context, streams Streams) (*wire.Frame, error) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		broken error
	)
	stop := func(err error) {
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		broken = errors.Join(broken, err)
	}
	if streams.In != nil {
		go func() {
			if err := call.feed(streams.In); err != nil {
				stop(err)
				call.Cancel()
			}
		}()
	}
	for channel, w := range map[uint8]io.Writer{wire.ChannelOut: streams.Out, wire.ChannelErr: streams.Err} {
		if w != nil {
			wg.Go(func() { stop(drain(call.Output(channel), w, call.Cancel)) })
		}
	}
	answer, err := call.Answer(ctx)
	if err != nil {
		call.endOutput()
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if broken != nil {
		if answer != nil {
			answer.Release()
		}
		return nil, broken
	}
	return answer, err
}

// endOutput ends channels that the server has not ended, as after a cancelled
// call that was not answered.
func (call *Call) endOutput() {
	for _, in := range call.out {
		if in != nil {
			in.Drop(io.ErrClosedPipe)
		}
	}
}

// Sweep ends what the sessions of a tag left running in the environment and
// returns how many processes that were.
func (c *Conn) Sweep(ctx context.Context, tag string) (int, error) {
	if len(tag) > wire.MaxWord {
		return 0, fmt.Errorf("sweep: tag of %d bytes: %w", len(tag), fsbridge.ErrInvalid)
	}
	f := wire.NewOpen(wire.OpSweep, len(tag)+4)
	f.B = wire.SweepRequest{Tag: tag}.Append(f.B)
	f, err := c.Do(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	defer f.Release()
	d := wire.NewDecoder(f.Payload())
	n := d.Upto(1 << 31)
	if err := d.Finish(); err != nil {
		return 0, &LostError{Sent: true, Err: c.Violated(err)}
	}
	return int(n), nil
}
