package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/workberth/workberth/internal/guest/reaper"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// maxStderr is how much of the end of the helper's messages is kept, in bytes.
const maxStderr = 4 << 10

var _ keeper.Runtime = (*process)(nil)

// process is a running helper. Its commands are its descendants; when it is killed,
// their reapers end them, and what got at its reaper is found by the tag in its
// environment.
type process struct {
	tag    string
	ref    sandbox.ProcessRef
	stderr tail.Buffer
	done   chan struct{} // closed when the helper has ended; state is set
	state  *os.ProcessState
	swept  atomic.Bool // nothing of it is left
}

// start starts the helper and waits for it in the background.
func (p *process) start(cmd *exec.Cmd) error {
	p.stderr.Limit = maxStderr
	if err := cmd.Start(); err != nil {
		return err
	}
	ref, err := sandbox.RefOf(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // its end is all that is wanted
		return err
	}
	p.ref = ref
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		p.state = cmd.ProcessState
		close(p.done)
	}()
	return nil
}

// Done is closed when the helper has ended.
func (p *process) Done() <-chan struct{} { return p.done }

// Kill ends the helper, then what it has left: reapers notice the end of their
// helper and end their trees; this waits for them and ends the rest.
func (p *process) Kill(ctx context.Context) error {
	if err := p.ref.Kill(ctx); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("the helper (%s) does not end: %w", p.ref, ctx.Err())
	}
	if _, err := searcher().Sweep(ctx, p.tag); err != nil {
		return err
	}
	p.swept.Store(true)
	return nil
}

// TerminateAfter answers for processes of a sandbox that has ended. Its end included
// them, and those of a later one are none of its business, whatever they carry.
func (p *process) TerminateAfter(context.Context, string, time.Duration) (sandbox.TerminateResult, error) {
	if p.swept.Load() {
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	}
	return sandbox.TerminateResult{Outcome: sandbox.TerminationUnknown}, fmt.Errorf("what the helper (%s) left could not be ended", p.ref)
}

// searcher finds processes of dead helpers; it starts none itself.
func searcher() *reaper.Runner { return reaper.New(reaper.Options{NoSpare: true}) }

// Clean reports whether the helper ended by itself and without complaint.
func (p *process) Clean() bool {
	select {
	case <-p.done:
		return p.state != nil && p.state.Success()
	default:
		return false
	}
}

// Diagnose says in one line how the helper ended.
func (p *process) Diagnose() string {
	select {
	case <-p.done:
	default:
		return "the helper is still running"
	}
	how := "the helper ended: " + p.state.String()
	if said := p.stderr.Line(0); said != "" {
		how += "; last message: " + said
	}
	return how
}
