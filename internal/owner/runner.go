package owner

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// runner starts foreground commands of one connection through the launch of
// package sandbox, so that custody, last check and finalisation are the same as
// everywhere.
type runner struct {
	sb   sandbox.Sandbox
	opts sandbox.StartOptions
	busy *activity
}

var _ proc.Runner = (*runner)(nil)

// Start starts a command. ctx bounds the start only; the command ends with
// Terminate, which the server calls when the connection is lost.
func (r *runner) Start(ctx context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	env, err := envMap(spec.Env)
	if err != nil {
		return nil, err
	}
	cmd := sandbox.Command{
		Argv: spec.Argv, Dir: spec.Dir, Stdin: spec.Stdin,
		KeepDescendants: spec.KeepDescendants, Grace: spec.Grace,
	}
	if spec.TTY != nil {
		cmd.TTY = &sandbox.TTYSize{Rows: spec.TTY.Rows, Cols: spec.TTY.Cols}
	}
	release := r.busy.begin()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	run, err := sandbox.Start(life, r.sb, cmd, env, sandbox.IO{Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr}, r.opts)
	started := stop() // from here on the end of ctx no longer ends the command
	if err != nil {
		end()
		release()
		return nil, err
	}
	if !started {
		end()
	}
	go func() {
		<-run.Done()
		end()
		release()
	}()
	return &process{run}, nil
}

// Terminate by marker is not offered: a client of the owner ends what it started.
func (r *runner) Terminate(context.Context, string, time.Duration) (proc.TerminateResult, error) {
	return proc.TerminateResult{Outcome: proc.Unknown}, errors.ErrUnsupported
}

// process presents a sandbox.Running as a proc.Process.
type process struct{ run *sandbox.Running }

// Pid is the process id inside the sandbox.
func (p *process) Pid() int { return p.run.Pid() }

// Wait waits for the end.
func (p *process) Wait(ctx context.Context) (proc.Status, error) {
	st, err := p.run.Wait(ctx)
	return proc.Status{Code: st.Code, Signal: st.Signal, Unknown: st.Unknown, Reason: st.Reason, Leftover: st.Leftover}, err
}

// Signal sends a signal.
func (p *process) Signal(ctx context.Context, sig int) error { return p.run.Signal(ctx, sig) }

// Resize sets the terminal's size.
func (p *process) Resize(ctx context.Context, s proc.Size) error {
	return p.run.Resize(ctx, sandbox.TTYSize{Rows: s.Rows, Cols: s.Cols})
}

// Terminate ends the tree.
func (p *process) Terminate(ctx context.Context, grace time.Duration) (proc.TerminateResult, error) {
	res, err := p.run.Terminate(ctx, grace)
	return proc.TerminateResult{Outcome: proc.Termination(res.Outcome), Pids: res.Pids}, err
}

// envMap turns KEY=VALUE words into an Env; the later wins.
func envMap(words []string) (sandbox.Env, error) {
	env := make(sandbox.Env, len(words))
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return nil, &proc.StartError{Reason: proc.BadSpec, What: "an environment entry without ="}
		}
		env[name] = value
	}
	return env, nil
}
