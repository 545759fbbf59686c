package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

// The greeting tells what is served, and nothing of the host.
func TestGreeting(t *testing.T) {
	none := func(context.Context, string) (int, error) { return 0, nil }
	for name, c := range map[string]struct {
		cfg      server.Config
		features []wire.Feature
		caps     []fsbridge.Capability
		mounts   int
	}{
		"nothing": {server.Config{}, nil, nil, 0},
		"commands": {
			server.Config{Runner: &guesttest.Runner{}, Sweep: none}, []wire.Feature{wire.FeatureExec, wire.FeatureSweep}, nil, 0,
		},
		"files":      {server.Config{Files: &guesttest.Files{}}, nil, fsbridge.AllCapabilities(), 2},
		"core files": {server.Config{Files: &guesttest.Files{Declared: []fsbridge.Capability{}}}, nil, nil, 0},
		"an owner": {server.Config{Call: func(context.Context, string, []byte, server.Streams) ([]byte, error) {
			return nil, nil
		}}, []wire.Feature{wire.FeatureCall}, nil, 0},
	} {
		c.cfg.Build, c.cfg.Tag = "v1", "the tag"
		p, served := serve(t, t.Context(), c.cfg)
		h := p.SayHello()
		if h.Protocol != wire.Version || h.Build != "v1" || h.Tag != "the tag" || h.Pid == 0 {
			t.Errorf("%s: %+v", name, h)
		}
		if len(h.Features) != len(c.features) || len(h.Capabilities) != len(c.caps) || len(h.Mounts) != c.mounts {
			t.Errorf("%s: %+v", name, h)
		}
		for _, f := range c.features {
			if !h.Has(f) {
				t.Errorf("%s: no feature %q", name, f)
			}
		}
		for _, m := range h.Mounts {
			if m.HostPath != "" {
				t.Errorf("%s: a path of the host was told: %q", name, m.HostPath)
			}
		}
		p.Close()
		if err := guesttest.Within(t, "Serve returns", served); err != nil {
			t.Errorf("%s: Serve: %v", name, err)
		}
	}
}

// A call that hangs holds up no other, whichever call it is, also one that usually
// takes no time and so runs where frames are read.
func TestSlowCallsHoldUpNobody(t *testing.T) {
	release := make(chan struct{})
	hanging := make(chan struct{}, 16)
	files := &guesttest.Files{Hook: func(_ context.Context, _, p string) error {
		if p == "slow" {
			hanging <- struct{}{}
			<-release
		}
		return nil
	}}
	files.Put("slow", "x")
	files.Put("fast", "x")
	conn, served := connect(t, server.Config{Files: files})
	do := func(op wire.Op, p string) error {
		f := wire.NewOpen(op, 64)
		f.B = wire.PathRequest{Path: p}.Append(f.B)
		if op == wire.OpRead {
			f.B = wire.ReadRequest{Path: p}.Append(f.B[:len(f.B)-len(p)-1])
		}
		f, err := conn.Do(t.Context(), f)
		if err == nil {
			f.Release()
		}
		return err
	}
	var wg sync.WaitGroup
	for _, op := range []wire.Op{wire.OpStat, wire.OpLstat, wire.OpRead, wire.OpHash, wire.OpStat} {
		wg.Go(func() {
			if err := do(op, "slow"); err != nil {
				t.Errorf("slow %v: %v", op, err)
			}
		})
		guesttest.Within(t, "the slow call", hanging)
		for range 20 {
			for _, op := range []wire.Op{wire.OpStat, wire.OpRead, wire.OpHash} {
				if err := do(op, "fast"); err != nil {
					t.Fatalf("fast %v: %v", op, err)
				}
			}
		}
	}
	close(release)
	wg.Wait()
	_ = conn.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// The end of the connection cancels every call and ends every command, and Serve
// returns after that.
func TestEndOfInput(t *testing.T) {
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	ended := make(chan string, 16)
	block := func(ctx context.Context, what string) error {
		<-ctx.Done()
		ended <- what
		return ctx.Err()
	}
	files := &guesttest.Files{
		Hook:    func(ctx context.Context, op, _ string) error { return block(ctx, op) },
		Changes: make(chan fsbridge.Event),
	}
	cfg := server.Config{
		Files: files, Runner: runner,
		Call: func(ctx context.Context, _ string, _ []byte, s server.Streams) ([]byte, error) {
			if _, err := io.Copy(io.Discard, s.In); err == nil {
				t.Error("a cut input ended well")
			}
			return nil, block(ctx, "call")
		},
	}
	p, served := serve(t, t.Context(), cfg)
	p.SayHello()
	stream := uint64(0)
	send := func(payload []byte) {
		stream++
		p.Send(wire.KindOpen, stream, payload)
	}
	for _, argv := range [][]string{{"sleep"}, {"cat"}, {"yes"}} {
		send(open(wire.OpExec, wire.ExecRequest{Spec: proc.Spec{Argv: argv, Stdin: true}, Stdout: true}))
		p.Until(wire.KindReply)
	}
	send(path(wire.OpStat, "f"))
	send(path(wire.OpHash, "f"))
	send(open(wire.OpWrite, wire.WriteRequest{Path: "f"}))
	send(open(wire.OpCall, wire.CallRequest{Method: "m", In: true}))
	send([]byte{byte(wire.OpEcho)}) // answered: everything before has begun to be
	p.Until(wire.KindDone)
	p.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, c := range runner.Started() {
		select {
		case <-c.Over():
		default:
			t.Errorf("%q still runs", c.Spec.Argv)
		}
	}
	if n := len(ended); n != 4 {
		t.Errorf("%d of 4 calls have ended", n)
	}
}

// ctx ends Serve as the end of the connection does, and is told.
func TestServeContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	p, served := serve(t, ctx, server.Config{Runner: runner})
	p.SayHello()
	p.Send(wire.KindOpen, 1, open(wire.OpExec, wire.ExecRequest{Spec: proc.Spec{Argv: []string{"sleep"}}}))
	p.Until(wire.KindReply)
	cancel()
	if err := guesttest.Within(t, "Serve returns", served); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: %v", err)
	}
	guesttest.Within(t, "the command ends", runner.Started()[0].Over())
	p.Drain()
}

// A command that was started to be kept outlives the connection.
func TestKeptCommand(t *testing.T) {
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	input, output := make(chan error, 1), make(chan error, 1)
	runner.Commands["daemon"] = func(ctx context.Context, p *guesttest.Process) proc.Status {
		_, err := io.Copy(io.Discard, p.Stdin)
		input <- err
		_, err = io.WriteString(p.Stdout, "still there")
		output <- err
		<-ctx.Done()
		return proc.Status{}
	}
	p, served := serve(t, t.Context(), server.Config{Runner: runner})
	p.SayHello()
	spec := proc.Spec{Argv: []string{"daemon"}, KeepDescendants: true, Stdin: true}
	p.Send(wire.KindOpen, 1, open(wire.OpExec, wire.ExecRequest{Spec: spec, Stdout: true}))
	p.Until(wire.KindReply)
	p.Close()
	// Its streams are cut, not ended: what it has got is not the whole.
	for what, c := range map[string]chan error{"input": input, "output": output} {
		if err := guesttest.Within(t, what, c); err == nil {
			t.Errorf("the %s of a command whose caller is gone ended well", what)
		}
	}
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	kept := runner.Started()[0]
	select {
	case <-kept.Over():
		t.Error("the command was ended")
	default:
	}
	if _, err := kept.Terminate(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// A caller that cancels ends its command, kept or not, and gets the status.
func TestCancelledCommand(t *testing.T) {
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	p, _ := serve(t, t.Context(), server.Config{Runner: runner})
	p.SayHello()
	spec := proc.Spec{Argv: []string{"sleep"}, KeepDescendants: true}
	p.Send(wire.KindOpen, 1, open(wire.OpExec, wire.ExecRequest{Spec: spec}))
	p.Until(wire.KindReply)
	p.Send(wire.KindCancel, 1, nil)
	_, payload := p.Until(wire.KindDone)
	d := wire.NewDecoder(payload)
	if status := d.Status(); d.Finish() != nil || status.Signal != 15 {
		t.Errorf("%+v, %v", status, d.Err())
	}
	p.Close()
}

// A call that does not end in time is left behind, and Serve says so.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		files := &guesttest.Files{Hook: func(context.Context, string, string) error {
			<-release
			return nil
		}}
		host, guest := guesttest.MemoryPair()
		served := make(chan error, 1)
		start := time.Now()
		go func() {
			served <- server.Serve(t.Context(), guest, server.Config{Files: files, Limits: server.Limits{Drain: 3 * time.Second}})
		}()
		p := guesttest.NewPeer(t, host)
		p.SayHello()
		p.Send(wire.KindOpen, 1, path(wire.OpHash, "f"))
		synctest.Wait()
		p.Close()
		if err := <-served; err == nil || !strings.Contains(err.Error(), "1 calls did not end") {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		close(release)
	})
}

// A call that panics fails, is logged, and takes nobody along.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	files := &guesttest.Files{Hook: func(_ context.Context, _, p string) error {
		if p == "bad" {
			panic("the bridge is broken")
		}
		return nil
	}}
	files.Put("good", "x")
	p, served := serve(t, t.Context(), server.Config{Files: files, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p.SayHello()
	for i, op := range []wire.Op{wire.OpStat, wire.OpHash} {
		p.Send(wire.KindOpen, uint64(2*i+1), path(op, "bad"))
		if _, payload := p.Until(wire.KindFail); !strings.Contains(failure(t, payload).Error(), "the server failed") {
			t.Errorf("%v: %v", op, failure(t, payload))
		}
		p.Send(wire.KindOpen, uint64(2*i+2), path(op, "good"))
		p.Until(wire.KindDone)
	}
	p.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if !strings.Contains(log.String(), "the bridge is broken") {
		t.Errorf("log %q", log.String())
	}
}

// The memory for what peers send ahead is bounded for all calls together; beyond
// it they get slower and still arrive.
func TestReceiveBudget(t *testing.T) {
	files := &guesttest.Files{}
	conn, served := connect(t, server.Config{Files: files, Limits: server.Limits{Receive: wire.BulkWindow}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := string(rune('a' + i))
			content := strings.Repeat(name, 3<<20)
			f := wire.NewOpen(wire.OpWrite, 64)
			f.B = wire.WriteRequest{Path: name}.Append(f.B)
			call, err := conn.Start(t.Context(), f, client.Shape{Content: true})
			if err != nil {
				t.Error(err)
				return
			}
			for rest := content; rest != ""; {
				n, err := call.Room(t.Context(), min(len(rest), wire.DataChunk))
				if err != nil {
					t.Error(err)
					return
				}
				d := call.Data(n)
				d.B = append(d.B, rest[:n]...)
				if err := call.Send(t.Context(), d); err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
			_ = call.End(t.Context())
			if _, err := call.Answer(t.Context()); err != nil {
				t.Error(err)
			}
			if got, _ := files.Get(name); got != content {
				t.Errorf("%d bytes of %q arrived", len(got), name)
			}
		})
	}
	wg.Wait()
	_ = conn.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A write whose connection ends before the frame that completes it changes nothing.
// FSB-11
func TestCutWrite(t *testing.T) {
	for name, cut := range map[string]func(p *guesttest.Peer){
		"connection": func(p *guesttest.Peer) { p.Close() },
		"cancel":     func(p *guesttest.Peer) { p.Send(wire.KindCancel, 1, nil) },
	} {
		for _, op := range []wire.Op{wire.OpWrite, wire.OpCreate, wire.OpAppend} {
			files := &guesttest.Files{}
			if op != wire.OpCreate {
				files.Put("f", "old")
			}
			was, _ := files.Get("f")
			p, served := serve(t, t.Context(), server.Config{Files: files})
			p.SayHello()
			var request []byte
			if op == wire.OpWrite {
				request = open(op, wire.WriteRequest{Path: "f"})
			} else {
				request = open(op, wire.ContentRequest{Path: "f", Size: 1000})
			}
			p.Send(wire.KindOpen, 1, append(request, "the beginning"...))
			p.Send(wire.KindData, 1, append([]byte{0}, strings.Repeat("x", 987)...))
			cut(p)
			if name == "cancel" {
				if _, payload := p.Until(wire.KindFail); !errors.Is(failure(t, payload), context.Canceled) {
					t.Errorf("%s, %v: %v", name, op, failure(t, payload))
				}
				p.Close()
			}
			if err := guesttest.Within(t, "Serve returns", served); err != nil {
				t.Errorf("%s, %v: Serve: %v", name, op, err)
			}
			if got, _ := files.Get("f"); got != was {
				t.Errorf("%s, %v: the file holds %q", name, op, got)
			}
		}
	}
}

// Content that is not as long as was announced changes nothing.
func TestAnnouncedSize(t *testing.T) {
	for _, op := range []wire.Op{wire.OpCreate, wire.OpAppend} {
		for _, sent := range []int{0, 9, 11, 100} {
			files := &guesttest.Files{}
			p, served := serve(t, t.Context(), server.Config{Files: files})
			p.SayHello()
			p.Send(wire.KindOpen, 1, open(op, wire.ContentRequest{Path: "f", Size: 10}))
			p.Send(wire.KindData, 1, append([]byte{0}, make([]byte, sent)...))
			p.Send(wire.KindEnd, 1, []byte{0})
			if _, payload := p.Until(wire.KindFail); !errors.Is(failure(t, payload), fsbridge.ErrInvalid) {
				t.Errorf("%v of %d bytes: %v", op, sent, failure(t, payload))
			}
			if _, ok := files.Get("f"); ok {
				t.Errorf("%v of %d bytes: there is a file", op, sent)
			}
			p.Close()
			if err := guesttest.Within(t, "Serve returns", served); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	}
}
