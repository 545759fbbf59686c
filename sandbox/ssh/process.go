package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/sandbox"
)

var _ keeper.Runtime = (*process)(nil)

// process is a running helper on a host. Its commands are its descendants there; when it
// ends, their reapers end them, and what got at its reaper is found by the tag in its
// environment.
type process struct {
	b       *Backend
	line    line
	group   *sshclient.Group
	session *sshclient.Session
	tag     string
	over    atomic.Bool // nothing of it is left
}

// Done is closed when the helper has ended, or the connection to it.
func (p *process) Done() <-chan struct{} { return p.session.Done() }

// Kill ends the helper, then what it has left: commands that were to be kept, and whatever
// got at its reaper. Over a lost connection it does nothing: the
// host's side notices the loss by itself, and the next connection looks for what is left.
func (p *process) Kill(ctx context.Context) error {
	if p.over.Load() {
		return nil
	}
	p.session.Abort()
	select {
	case <-p.session.Cut():
		return fmt.Errorf("what runs on %s is not known: %w; it is looked for at the next connection", p.group.Settings(), sshclient.ErrCut)
	default:
	}
	if err := p.b.endSession(ctx, p.group, p.tag); err != nil {
		return err
	}
	p.over.Store(true)
	return nil
}

// TerminateAfter answers for processes of a sandbox that has ended: it connects anew and
// ends what its generation has left.
func (p *process) TerminateAfter(ctx context.Context, _ string, _ time.Duration) (sandbox.TerminateResult, error) {
	if p.over.Load() {
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	}
	group, release, err := p.b.lines.acquire(p.line)
	if err == nil {
		defer release()
		err = p.b.endSession(ctx, group, p.tag)
	}
	if err != nil {
		return sandbox.TerminateResult{Outcome: sandbox.TerminationUnknown}, p.b.explain(err)
	}
	p.over.Store(true)
	return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
}

// Clean reports whether the helper ended by itself and without complaint.
func (p *process) Clean() bool {
	select {
	case <-p.session.Done():
		err, proved := p.session.Ended()
		return err == nil && proved
	default:
		return false
	}
}

// Diagnose says in one line how the helper ended.
func (p *process) Diagnose() string {
	select {
	case <-p.session.Done():
	default:
		return "the helper is still running"
	}
	how := "the helper ended"
	if err, _ := p.session.Ended(); err != nil {
		how += ": " + err.Error()
	}
	if said := p.session.Stderr(); said != "" {
		how += fmt.Sprintf("; last message: %q", said)
	}
	return how
}

// quell ends what the generation of a record has left, whoever holds it.
func (b *Backend) quell(ctx context.Context, rec sandbox.Record) error {
	if rec.InstanceTag == "" {
		return nil
	}
	group, release, err := b.lines.acquire(lineOf(rec.Info.Config))
	if err != nil {
		return b.explain(err)
	}
	defer release()
	return b.explain(b.endSession(ctx, group, rec.InstanceTag))
}

// endSession ends the helper of a generation, should it still live, and all it has started.
func (b *Backend) endSession(ctx context.Context, group *sshclient.Group, tag string) error {
	ctx, cancel := context.WithTimeout(ctx, endBound)
	defer cancel()
	c, err := b.call(ctx, group, "end", tag)
	if err != nil {
		return err
	}
	defer c.session.Abort()
	if err := finish(ctx, c); err != nil {
		return fmt.Errorf("what runs on %s could not be ended: %w", group.Settings(), err)
	}
	return nil
}

// finish ends the input of a helper that plays a short role and waits for its end.
func finish(ctx context.Context, c *call) error {
	if c.word != "ready" {
		return fmt.Errorf("the host's shell answers %.300q", c.word)
	}
	stop := context.AfterFunc(ctx, c.session.Abort)
	defer stop()
	_ = c.session.Close()            // its end is what counts
	_, _ = io.Copy(io.Discard, c.in) // likewise
	<-c.session.Done()
	err, _ := c.session.Ended()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if said := c.session.Stderr(); err != nil && said != "" {
		return errors.Join(errors.New(said), err)
	}
	return err
}
