package client_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
)

func TestSignalAndResize(t *testing.T) {
	runner, conn := withRunner(t)
	p := start(t, conn, proc.Spec{Argv: []string{"sleep"}, TTY: &proc.Size{Rows: 1, Cols: 1}}, proc.IO{})
	inside := runner.Started()[0]
	if err := p.Signal(t.Context(), 10); err != nil {
		t.Error(err)
	}
	if got := guesttest.Within(t, "signal", inside.Signals); got != 10 {
		t.Errorf("signal %d", got)
	}
	if err := p.Resize(t.Context(), proc.Size{Rows: 33, Cols: 65535}); err != nil {
		t.Error(err)
	}
	if got := guesttest.Within(t, "size", inside.Sizes); got != (proc.Size{Rows: 33, Cols: 65535}) {
		t.Errorf("size %+v", got)
	}
	// SBX-09: termination may come repeatedly, concurrently and after the end.
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if res, err := p.Terminate(t.Context(), 0); res.Outcome != proc.Gone || err != nil {
				t.Errorf("terminate: %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Signal(t.Context(), 10); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal after the end: %v", err)
	}
	if err := p.Resize(t.Context(), proc.Size{}); err != nil {
		t.Errorf("resize after the end: %v", err)
	}
	if res, err := p.Terminate(t.Context(), 0); res.Outcome != proc.Gone || err != nil {
		t.Errorf("terminate after the end: %+v, %v", res, err)
	}
	if got := runner.Terminated(); len(got) == 0 || got[len(got)-1] != inside.Spec.Marker {
		t.Errorf("after the end the tree is looked for by %q, want %q", got, inside.Spec.Marker)
	}
}

// The connection's loss is no exit code: the status is unknown and says why.
func TestLostConnection(t *testing.T) {
	runner, conn := withRunner(t)
	p := start(t, conn, proc.Spec{Argv: []string{"sleep"}}, proc.IO{})
	_ = conn.Close()
	status, err := p.Wait(t.Context())
	if !status.Unknown || status.Reason == "" || err != nil {
		t.Errorf("%+v, %v", status, err)
	}
	if res, err := p.Terminate(t.Context(), 0); res.Outcome != proc.Unknown || !errors.Is(err, client.ErrClosed) {
		t.Errorf("terminate: %+v, %v", res, err)
	}
	if err := p.Signal(t.Context(), 9); !errors.Is(err, client.ErrClosed) {
		t.Errorf("signal: %v", err)
	}
	guesttest.Within(t, "the command is terminated", runner.Started()[0].Over())
}

// Wait's ctx ends the waiting and nothing else.
func TestWaitContext(t *testing.T) {
	runner, conn := withRunner(t)
	p := start(t, conn, proc.Spec{Argv: []string{"sleep"}}, proc.IO{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	if n := runner.Started()[0].Kills(); n != 0 {
		t.Errorf("terminated %d times", n)
	}
	if _, err := p.Terminate(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

// A start that is cancelled leaves no command.
func TestCancelledStart(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	runner := &guesttest.Runner{Commands: guesttest.Commands()}
	conn := connect(t, server.Config{Runner: slowStart{runner, begun, release}}, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
		close(release)
	}()
	if _, err := conn.Runner().Start(ctx, proc.Spec{Argv: []string{"sleep"}}, proc.IO{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	guesttest.Within(t, "the command is terminated", runner.Started()[0].Over())
	if _, err := conn.Runner().Start(ctx, proc.Spec{Argv: []string{"sleep"}}, proc.IO{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start under a cancelled ctx: %v", err)
	}
	if n := len(runner.Started()); n != 1 {
		t.Errorf("%d commands were started", n)
	}
}

type slowStart struct {
	*guesttest.Runner
	begun, release chan struct{}
}

func (s slowStart) Start(ctx context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	close(s.begun)
	<-s.release
	return s.Runner.Start(ctx, spec, streams)
}

// Two hundred at a time, each with its own output. C077
func TestManyCommands(t *testing.T) {
	_, conn := withRunner(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			in := strings.Repeat(string(rune('a'+i%26)), 100_000+i)
			var out bytes.Buffer
			p, err := conn.Runner().Start(t.Context(), proc.Spec{Argv: []string{"cat"}, Stdin: true},
				proc.IO{Stdin: strings.NewReader(in), Stdout: &out})
			if err != nil {
				t.Errorf("start: %v", err)
				return
			}
			if status, err := p.Wait(t.Context()); status.Code != 0 || err != nil {
				t.Errorf("%+v, %v", status, err)
			}
			if out.String() != in {
				t.Errorf("%d bytes came back as %d", len(in), out.Len())
			}
		})
	}
	wg.Wait()
}

func TestNoRunner(t *testing.T) {
	conn := connect(t, server.Config{}, client.Options{})
	if _, err := conn.Runner().Start(t.Context(), proc.Spec{Argv: []string{"true"}}, proc.IO{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("start: %v", err)
	}
	if res, err := conn.Runner().Terminate(t.Context(), "m", 0); !errors.Is(err, errors.ErrUnsupported) || res.Outcome != proc.Unknown {
		t.Errorf("terminate: %+v, %v", res, err)
	}
}
