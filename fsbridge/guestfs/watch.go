package guestfs

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Watch implements fsbridge.Watcher. A receiver that does not drain holds up this
// watch's channel only; the server's buffer then overflows into an EventOverflow.
func (b *Bridge) Watch(ctx context.Context, path string, opts fsbridge.WatchOptions) (fsbridge.Watch, error) {
	r, err := b.begin(ctx, wire.OpWatch, path)
	if err != nil {
		return nil, err
	}
	f := wire.NewOpen(r.op, len(path)+24)
	f.B = wire.WatchRequest{Path: path, Options: opts, Window: wire.InitialWindow}.Append(f.B)
	call, err := r.start(f, client.Shape{Reply: true, Out: wire.InitialWindow})
	if err != nil {
		return nil, err
	}
	first, done, err := call.First(ctx)
	if err != nil {
		return nil, r.giveUp(call, err)
	}
	first.Release()
	if done {
		return nil, r.violated(wire.Violation("a watch ended before it began"))
	}
	w := &watch{r: r, call: call, events: make(chan fsbridge.Event, eventBuffer), ended: make(chan struct{})}
	inner, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	go w.run(inner)
	return w, nil
}

// eventBuffer is how many events wait for the receiver on this side.
const eventBuffer = 64

type watch struct {
	r      *request
	call   *client.Call
	cancel context.CancelFunc
	events chan fsbridge.Event
	ended  chan struct{} // closed with err

	mu     sync.Mutex
	closed bool
	err    error
}

// Events implements fsbridge.Watch.
func (w *watch) Events() <-chan fsbridge.Event { return w.events }

// Err implements fsbridge.Watch.
func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close implements fsbridge.Watch. It returns when Events is closed.
func (w *watch) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	<-w.ended
	return nil
}

func (w *watch) run(ctx context.Context) {
	defer w.cancel()
	err := w.receive(ctx)
	if ctx.Err() != nil {
		w.call.Abandon()
	}
	w.mu.Lock()
	if !w.closed {
		w.err = err
	}
	w.mu.Unlock()
	close(w.events)
	close(w.ended)
}

// receive hands events on until the watch ends.
func (w *watch) receive(ctx context.Context) error {
	for {
		f, err := w.call.Output(wire.ChannelOut).Next(ctx)
		if errors.Is(err, io.EOF) {
			last, err := w.call.Answer(ctx)
			if err != nil {
				return w.r.giveUp(w.call, err)
			}
			defer last.Release()
			return w.r.batch(last.Payload(), w.handOn(ctx))
		}
		if err != nil {
			return w.r.cut(w.call, err)
		}
		err = w.r.batch(f.Payload()[1:], w.handOn(ctx))
		f.Release()
		if err != nil {
			return err
		}
	}
}

func (w *watch) handOn(ctx context.Context) func(d *wire.Decoder) error {
	return func(d *wire.Decoder) error {
		e := d.Event()
		if d.Err() != nil {
			return nil
		}
		select {
		case w.events <- e:
			return nil
		case <-ctx.Done():
			return w.r.refuse(ctx.Err())
		}
	}
}
