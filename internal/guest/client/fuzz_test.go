package client_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// FuzzClientAgainstGarbageServer lets a helper say anything, before its greeting or
// after it, to a client with calls of every shape under way. Nothing crashes, and
// when the helper hangs up everything ends.
func FuzzClientAgainstGarbageServer(f *testing.F) {
	f.Add(true, []byte{})
	f.Add(false, []byte("command not found\n"))
	f.Add(true, frames(
		frame{wire.KindDone, 1, []byte("x")}, frame{wire.KindReply, 2, []byte{7}},
		frame{wire.KindData, 2, []byte("\x01output")}, frame{wire.KindCredit, 2, []byte{0, 10}},
		frame{wire.KindDone, 2, wire.AppendStatus(nil, proc.Status{Code: 3})},
	))
	f.Add(false, append([]byte(hello(guesttest.FullHello())), frames(frame{wire.KindFail, 1, []byte{0}})...))
	f.Fuzz(func(t *testing.T, greets bool, says []byte) {
		host, guest := guesttest.MemoryPair()
		if greets {
			says = append([]byte(hello(guesttest.FullHello())), says...)
		}
		ctx, cancel := context.WithTimeout(t.Context(), guesttest.Patience)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, guest)
		}()
		_, _ = guest.Write(says[:len(says)/2])
		done := make(chan *client.Conn, 1)
		go func() {
			c, err := client.New(ctx, host, client.Options{HandshakeTimeout: guesttest.Patience, CancelWait: time.Millisecond})
			if err != nil {
				c = nil
			}
			done <- c
		}()
		_, _ = guest.Write(says[len(says)/2:])
		if !greets {
			_ = guest.Close()
		}
		conn := <-done
		if conn == nil {
			_ = guest.Close()
			return
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = conn.Echo(ctx, []byte("x")) })
		wg.Go(func() {
			var out bytes.Buffer
			p, err := conn.Runner().Start(ctx, proc.Spec{Argv: []string{"a"}, Stdin: true},
				proc.IO{Stdin: strings.NewReader(strings.Repeat("x", 100_000)), Stdout: &out})
			if err == nil {
				_, _ = p.Wait(ctx)
			}
		})
		wg.Go(func() { _ = conn.Call(ctx, "m", nil, nil, client.Streams{In: strings.NewReader("y"), Out: io.Discard}) })
		wg.Go(func() { _, _ = conn.Sweep(ctx, "t") })
		_ = guest.Close()
		wg.Wait()
		if ctx.Err() != nil {
			t.Error("a call hung")
		}
		_ = conn.Close()
	})
}

type frame struct {
	kind    wire.Kind
	stream  uint64
	payload []byte
}

func frames(list ...frame) []byte {
	var out []byte
	for _, fr := range list {
		f := wire.NewFrame(fr.kind, fr.stream, len(fr.payload))
		f.B = append(f.B, fr.payload...)
		b, _ := f.Bytes()
		out = append(out, b...)
	}
	return out
}
