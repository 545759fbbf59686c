package backendtest

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// started is a command that runs.
type started struct {
	*sandbox.Running
	x      *box
	args   []string
	cancel context.CancelFunc
	stdin  io.WriteCloser

	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // gets a value when text has grown
}

// Write collects standard output.
func (s *started) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// output is what came on standard output so far.
func (s *started) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// start launches a role. It is cancelled at the end of the check.
func (x *box) start(args ...string) *started {
	x.k.Helper()
	return x.startCommand(x.role(args...), nil)
}

// startCommand launches a command with a standard input that stays open.
func (x *box) startCommand(cmd sandbox.Command, env sandbox.Env) *started {
	x.k.Helper()
	s, err := x.tryStart(cmd, env)
	if err != nil {
		x.k.Fatalf("start %q: %v", cmd.Argv, err)
	}
	return s
}

func (x *box) tryStart(cmd sandbox.Command, env sandbox.Env) (*started, error) {
	ctx, cancel := context.WithCancel(x.k.ctx)
	r, w := io.Pipe()
	s := &started{x: x, args: cmd.Argv, cancel: cancel, stdin: w, more: make(chan struct{}, 1)}
	if env == nil {
		env = sandbox.Env{"SECRET": secretValue}
	}
	running, err := sandbox.Start(ctx, x.Sandbox, cmd, env, sandbox.IO{Stdin: r, Stdout: s}, sandbox.StartOptions{})
	if err != nil {
		cancel()
		return nil, err
	}
	s.Running = running
	x.k.Cleanup(func() {
		w.Close()
		cancel()
		<-running.Done()
	})
	return s, nil
}

// waitFor returns the output once it holds text.
func (s *started) waitFor(text string) string {
	s.x.k.Helper()
	for {
		if out := s.output(); strings.Contains(out, text) {
			return out
		}
		select {
		case <-s.more:
		case <-s.Done():
			if out := s.output(); strings.Contains(out, text) {
				return out
			}
			status, _ := s.Wait(s.x.k.ctx)
			s.x.k.Fatalf("%q ended with %+v and did not write %q; it wrote %q", s.args, status, text, s.output())
		case <-s.x.k.ctx.Done():
			s.x.k.Fatalf("%q does not write %q; it wrote %q", s.args, text, s.output())
		}
	}
}

// ready waits for the word that roles say when they are.
func (s *started) ready() *started {
	s.x.k.Helper()
	s.waitFor("ready")
	return s
}

// ended waits for the end.
func (s *started) ended() sandbox.ExitStatus {
	s.x.k.Helper()
	status, err := s.Wait(s.x.k.ctx)
	if err != nil {
		s.x.k.Fatalf("%q does not end: %v", s.args, err)
	}
	return status
}

// terminate ends the tree, which must be gone then.
func (s *started) terminate(grace time.Duration) {
	s.x.k.Helper()
	res, err := s.Terminate(s.x.k.ctx, grace)
	if err != nil || res.Outcome != sandbox.TerminationGone {
		s.x.k.Errorf("Terminate of %q = %+v, %v; want gone", s.args, res, err)
	}
}
