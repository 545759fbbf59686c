package server_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

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

// greeting is the bytes of a client's hello.
func greeting() []byte {
	return frames(frame{wire.KindHello, 0, wire.Hello{Protocol: wire.Version, Build: "v1", Pid: 1}.Append(nil)})
}

// FuzzServerAgainstGarbageClient lets a client say anything. Nothing crashes, and
// when it hangs up everything it began has ended.
func FuzzServerAgainstGarbageClient(f *testing.F) {
	f.Add(false, []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(true, frames(
		frame{wire.KindOpen, 1, open(wire.OpExec, wire.ExecRequest{Spec: proc.Spec{Argv: []string{"cat"}, Stdin: true}, Stdout: true})},
		frame{wire.KindData, 1, []byte("\x00input")}, frame{wire.KindEnd, 1, []byte{0}},
		frame{wire.KindOpen, 2, open(wire.OpWrite, wire.WriteRequest{Path: "a"})},
		frame{wire.KindData, 2, []byte("\x00content")}, frame{wire.KindCancel, 2, nil},
	))
	for op := wire.OpNone; op.Valid() || op == wire.OpNone; op++ {
		f.Add(true, frames(frame{wire.KindOpen, 3, path(op, "a")}, frame{wire.KindCredit, 3, []byte{1, 10}}))
	}
	f.Fuzz(func(t *testing.T, greets bool, says []byte) {
		files := &guesttest.Files{Changes: make(chan fsbridge.Event)}
		files.Put("a", "content")
		host, guest := guesttest.MemoryPair()
		runner := &guesttest.Runner{Commands: guesttest.Commands()}
		served := make(chan error, 1)
		go func() {
			served <- server.Serve(t.Context(), guest, server.Config{
				Files: files, Runner: runner, Limits: server.Limits{Content: 1 << 20, Drain: guesttest.Patience},
				Sweep: func(context.Context, string) (int, error) { return 1, nil },
				Call: func(_ context.Context, _ string, _ []byte, s server.Streams) ([]byte, error) {
					_, err := io.Copy(s.Out, s.In)
					return nil, err
				},
			})
		}()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, host)
		}()
		if greets {
			_, _ = host.Write(greeting())
		}
		_, _ = host.Write(says)
		// Half of the calls are answered before the end, half are cut.
		if len(says)%2 == 0 {
			time.AfterFunc(time.Millisecond, func() { _ = host.Close() })
		} else {
			_ = host.Close()
		}
		_ = guesttest.Within(t, "Serve returns", served)
		_ = host.Close()
		<-drained
		for _, p := range runner.Started() {
			if p.Spec.KeepDescendants {
				_, _ = p.Terminate(context.Background(), 0)
				continue
			}
			guesttest.Within(t, "the command ends", p.Over())
		}
	})
}
