package guesttest

import (
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Runner runs commands that are functions of this process. Argv[0] names one of
// Commands; what is not there cannot be started.
type Runner struct {
	// Commands are the programs by name. ctx of a command ends when it is
	// terminated; what it returns is its status.
	Commands map[string]func(ctx context.Context, p *Process) proc.Status

	mu      sync.Mutex
	started []*Process
	ended   []string // markers that Terminate was called with
}

var _ proc.Runner = (*Runner)(nil)

// Process is a running function.
type Process struct {
	proc.IO
	Spec proc.Spec
	// Signals gets what Signal sends.
	Signals chan int
	// Sizes gets what Resize sets.
	Sizes chan proc.Size

	pid    int
	cancel context.CancelFunc
	over   chan struct{}
	status proc.Status
	kills  int
	mu     sync.Mutex
}

// Start implements proc.Runner.
func (r *Runner) Start(_ context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	if len(spec.Argv) == 0 {
		return nil, &proc.StartError{Reason: proc.BadSpec, What: "no command"}
	}
	run := r.Commands[spec.Argv[0]]
	if run == nil {
		return nil, &proc.StartError{Reason: proc.NoCommand, What: spec.Argv[0], Err: syscall.ENOENT}
	}
	if streams.Stdin == nil {
		streams.Stdin = strings.NewReader("")
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{
		IO: streams, Spec: spec, Signals: make(chan int, 16), Sizes: make(chan proc.Size, 16),
		cancel: cancel, over: make(chan struct{}),
	}
	r.mu.Lock()
	r.started = append(r.started, p)
	p.pid = 100 + len(r.started)
	r.mu.Unlock()
	go func() {
		defer close(p.over)
		p.status = run(ctx, p)
	}()
	return p, nil
}

// Terminate implements proc.Runner.
func (r *Runner) Terminate(ctx context.Context, marker string, grace time.Duration) (proc.TerminateResult, error) {
	r.mu.Lock()
	r.ended = append(r.ended, marker)
	started := append([]*Process(nil), r.started...)
	r.mu.Unlock()
	res := proc.TerminateResult{Outcome: proc.Gone}
	for _, p := range started {
		if p.Spec.Marker == marker {
			one, err := p.Terminate(ctx, grace)
			if err != nil {
				return one, err
			}
			res.Killed += one.Killed
		}
	}
	return res, nil
}

// Started returns the commands started so far.
func (r *Runner) Started() []*Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Process(nil), r.started...)
}

// Terminated returns the markers that Terminate was called with.
func (r *Runner) Terminated() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.ended...)
}

// Pid implements proc.Process.
func (p *Process) Pid() int { return p.pid }

// Wait implements proc.Process.
func (p *Process) Wait(ctx context.Context) (proc.Status, error) {
	select {
	case <-p.over:
		return p.status, nil
	case <-ctx.Done():
		return proc.Status{}, ctx.Err()
	}
}

// Signal implements proc.Process.
func (p *Process) Signal(_ context.Context, signal int) error {
	p.Signals <- signal
	return nil
}

// Resize implements proc.Process.
func (p *Process) Resize(_ context.Context, size proc.Size) error {
	p.Sizes <- size
	return nil
}

// Terminate implements proc.Process.
func (p *Process) Terminate(context.Context, time.Duration) (proc.TerminateResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
	select {
	case <-p.over:
		return proc.TerminateResult{Outcome: proc.Gone}, nil
	default:
	}
	p.cancel()
	<-p.over
	return proc.TerminateResult{Outcome: proc.Gone, Killed: 1}, nil
}

// Kills returns how often Terminate was called.
func (p *Process) Kills() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kills
}

// Over is closed when the command has ended.
func (p *Process) Over() <-chan struct{} { return p.over }

// Commands are some programs: "true", "false", "cat" (standard input to standard
// output), "yes" (output without an end), "sleep" (until terminated), "die" (by
// SIGKILL), "hold" (as sleep, and deaf to termination until its input ends).
func Commands() map[string]func(ctx context.Context, p *Process) proc.Status {
	killed := proc.Status{Code: 128 + 15, Signal: 15}
	return map[string]func(ctx context.Context, p *Process) proc.Status{
		"true":  func(context.Context, *Process) proc.Status { return proc.Status{} },
		"false": func(context.Context, *Process) proc.Status { return proc.Status{Code: 1} },
		"die":   func(context.Context, *Process) proc.Status { return proc.Status{Code: 137, Signal: 9} },
		"cat": func(ctx context.Context, p *Process) proc.Status {
			copied := make(chan error, 1)
			go func() {
				_, err := io.Copy(p.Stdout, p.Stdin)
				copied <- err
			}()
			select {
			case <-ctx.Done():
				return killed
			case err := <-copied:
				if err != nil {
					return proc.Status{Code: 1}
				}
				return proc.Status{}
			}
		},
		"yes": func(ctx context.Context, p *Process) proc.Status {
			line := make([]byte, 4096)
			for i := range line {
				line[i] = "y\n"[i%2]
			}
			for ctx.Err() == nil {
				if _, err := p.Stdout.Write(line); err != nil {
					return proc.Status{Code: 128 + 13, Signal: 13}
				}
			}
			return killed
		},
		"sleep": func(ctx context.Context, _ *Process) proc.Status {
			<-ctx.Done()
			return killed
		},
		"hold": func(_ context.Context, p *Process) proc.Status {
			_, _ = io.Copy(io.Discard, p.Stdin)
			return killed
		},
	}
}
