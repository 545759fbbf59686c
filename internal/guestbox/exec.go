package guestbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// token is what is kept for one exec spec until it is finalised.
type token struct {
	spawned   atomic.Bool
	finalized atomic.Bool
}

// BuildExecSpec checks a command and turns it into something that can be launched
// once. Keeps SBX-02, SBX-08.
func (h *Handle) BuildExecSpec(ctx context.Context, cmd sandbox.Command, env sandbox.Env) (sandbox.ExecSpec, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.ExecSpec{}, err
	}
	if err := h.AssertCurrent(); err != nil {
		return sandbox.ExecSpec{}, err
	}
	cmd, err := check(cmd, h.box.opts.Info.Workdir)
	if err != nil {
		return sandbox.ExecSpec{}, err
	}
	all, err := h.box.environment(env, cmd.TTY != nil)
	if err != nil {
		return sandbox.ExecSpec{}, err
	}
	if all[sandbox.MarkerVar] == "" {
		all[sandbox.MarkerVar] = sandbox.NewMarker()
	}
	t := &token{}
	h.mu.Lock()
	h.tokens[t] = struct{}{}
	h.mu.Unlock()
	return sandbox.ExecSpec{
		Command: cmd, Env: all, Token: t,
		AssertCurrent: func() error {
			if t.finalized.Load() {
				return fmt.Errorf("%w: the exec spec was finalised", sandbox.ErrRefused)
			}
			return h.AssertCurrent()
		},
		Spawn: func(ctx context.Context, streams sandbox.IO) (sandbox.Process, error) {
			return h.spawn(ctx, t, cmd, all, streams)
		},
	}, nil
}

// FinalizeExec releases a token. It kills nothing. Keeps SBX-05.
func (h *Handle) FinalizeExec(_ context.Context, tok sandbox.Token, _ sandbox.Outcome) error {
	if tok == nil {
		return nil
	}
	t, ok := tok.(*token)
	if !ok {
		return fmt.Errorf("%w: the token is not of this backend", sandbox.ErrRefused)
	}
	if t == nil {
		return nil
	}
	t.finalized.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tokens, t)
	return nil
}

// OpenTokens is the number of exec specs of this handle that are not finalised.
func (h *Handle) OpenTokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tokens)
}

// spawn launches the command, once.
func (h *Handle) spawn(ctx context.Context, t *token, cmd sandbox.Command, env sandbox.Env, streams sandbox.IO) (sandbox.Process, error) {
	if t.finalized.Load() || !t.spawned.CompareAndSwap(false, true) {
		return nil, errLaunched
	}
	if err := h.AssertCurrent(); err != nil {
		return nil, err
	}
	b := h.box
	marker := env[sandbox.MarkerVar]
	spec := proc.Spec{
		Argv: cmd.Argv, Env: words(env), Dir: cmd.Dir, Stdin: cmd.Stdin && streams.Stdin != nil,
		Limits: b.opts.Limits, Marker: marker, KeepDescendants: cmd.KeepDescendants, Grace: cmd.Grace,
	}
	if cmd.TTY != nil {
		spec.TTY = &proc.Size{Rows: cmd.TTY.Rows, Cols: cmd.TTY.Cols}
	}
	p, err := b.runner.Start(ctx, spec, proc.IO{
		Stdin: streams.Stdin, Stdout: orDiscard(streams.Stdout), Stderr: orDiscard(streams.Stderr),
	})
	if err != nil {
		return nil, b.startError(ctx, err)
	}
	return newProcess(h, marker, p), nil
}

// startError explains a start that failed.
func (b *Box) startError(ctx context.Context, err error) error {
	var lost *client.LostError
	if !errors.As(err, &lost) {
		return err
	}
	if ctx.Err() != nil && b.gone() == nil {
		return err
	}
	return errors.Join(b.settled(ctx), err)
}

// orDiscard is w, or a writer that takes anything.
func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
