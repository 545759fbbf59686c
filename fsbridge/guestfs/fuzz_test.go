package guestfs_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/wire"
)

// FuzzAnswers answers any call with anything: perhaps a reply, perhaps data, and a
// last frame. Nothing crashes or hangs, and every error is a *PathError.
func FuzzAnswers(f *testing.F) {
	names := slices.Sorted(maps.Keys(calls()))
	info := wire.AppendInfo(nil, file("f"))
	for i := range names {
		f.Add(byte(i), []byte(nil), []byte(nil), []byte(nil), false)
		f.Add(byte(i), info, append([]byte{wire.ChannelOut}, "data"...), []byte{4}, false)
		f.Add(byte(i), []byte{4}, entry("a"), entry("b"), false)
		f.Add(byte(i), []byte(nil), []byte(nil), wire.AppendError(nil, fsbridge.ErrReadOnly), true)
	}
	f.Fuzz(func(t *testing.T, which byte, reply, data, last []byte, fail bool) {
		host, guest := guesttest.MemoryPair()
		over := make(chan struct{})
		go func() {
			defer close(over)
			p := guesttest.NewPeer(quiet{t}, guest)
			p.Greet(guesttest.FullHello())
			stream, _ := p.Until(wire.KindOpen)
			if len(reply) > 0 {
				p.Send(wire.KindReply, stream, reply)
			}
			if len(data) > 0 {
				p.Send(wire.KindData, stream, data)
			}
			if fail {
				p.Send(wire.KindFail, stream, last)
			} else {
				p.Send(wire.KindDone, stream, last)
			}
			p.Drain()
		}()
		conn, err := client.New(t.Context(), host, client.Options{CancelWait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), guesttest.Patience)
		defer cancel()
		name := names[int(which)%len(names)]
		err = calls()[name](ctx, guestfs.New(conn, guestfs.Options{ReadLimit: 1 << 20}))
		if ctx.Err() != nil {
			t.Errorf("%s hangs", name)
		}
		var pe *fsbridge.PathError
		if err != nil && !errors.As(err, &pe) {
			t.Errorf("%s: %v is no *PathError", name, err)
		}
		_ = conn.Close()
		<-over
	})
}

// quiet is a test whose peer may be hung up on.
type quiet struct{ testing.TB }

func (quiet) Errorf(string, ...any) {}
