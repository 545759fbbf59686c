package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
)

// MarkerVar is the environment variable that carries the process marker.
const MarkerVar = proc.MarkerVar

// DefaultGrace is the time between SIGTERM and SIGKILL where none is given.
const DefaultGrace = proc.DefaultGrace

// NewMarker makes a process marker: 128 random bits in hexadecimal. Two calls
// never give the same one. It is no secret and knowing it gives no rights.
func NewMarker() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// WithMarker returns a copy of env that carries the marker.
func WithMarker(env Env, marker string) Env {
	marked := env.Clone()
	marked[MarkerVar] = marker
	return marked
}

// Asserter is the optional ability of a Sandbox to tell, without I/O, whether
// commands may still be started. It gives custody by shell command the refusals
// of SBX-08 and SBX-13.
type Asserter interface {
	AssertCurrent() error
}

// PrepareProcessCleanup takes custody of the process tree of one command, before
// its exec spec is built. Build the spec with the environment of the result, and
// keep its Terminate for as long as the command may live.
//
// A sandbox that is a [ProcessCleaner] makes the custody itself and refuses after
// revocation. One that is a [ShellCleaner] ends marked processes by a command of
// its own. With neither, preparation still succeeds; Terminate then returns
// TerminationUnknown and an error that matches [errors.ErrUnsupported]. Keeps
// SBX-01, SBX-07, SBX-08, SBX-14.
func PrepareProcessCleanup(ctx context.Context, sb Sandbox, env Env) (Prepared, error) {
	if err := ctx.Err(); err != nil {
		return Prepared{}, err
	}
	if cleaner, ok := sb.(ProcessCleaner); ok {
		p, err := cleaner.PrepareProcessCleanup(ctx, env)
		if err != nil {
			return Prepared{}, err
		}
		return p, p.check()
	}
	return fallbackCustody(sb, env)
}

// check finds a custody that could not keep what it promises.
func (p Prepared) check() error {
	switch {
	case p.Terminate == nil || p.Interrupt == nil:
		return errors.New("sandbox: process cleanup without callbacks")
	case p.Marker == "" || p.Env[MarkerVar] != p.Marker:
		return errors.New("sandbox: process cleanup whose environment does not carry its marker")
	}
	return nil
}

// custody is the process cleanup of a sandbox that is no ProcessCleaner.
type custody struct {
	sb     Sandbox
	marker string

	mu   sync.Mutex
	proc Process // set once the command runs
}

func fallbackCustody(sb Sandbox, env Env) (Prepared, error) {
	c := &custody{sb: sb, marker: NewMarker()}
	if err := c.live(); err != nil {
		return Prepared{}, err
	}
	return Prepared{
		Env: WithMarker(env, c.marker), Marker: c.marker,
		Terminate: c.terminate, Interrupt: c.interrupt, launched: c.launched,
	}, nil
}

// live is the ordinary check whether the sandbox may execute.
func (c *custody) live() error {
	select {
	case <-c.sb.Done():
		if err := c.sb.Err(); err != nil {
			return err
		}
		return ErrGone
	default:
	}
	if a, ok := c.sb.(Asserter); ok {
		return a.AssertCurrent()
	}
	return nil
}

func (c *custody) launched(p Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proc = p
}

// terminate does not look whether the sandbox is done: where it has no process
// namespace its processes outlive it, and the backend keeps cleanup possible by
// its own rules (SBX-15).
func (c *custody) terminate(ctx context.Context, grace time.Duration) (TerminateResult, error) {
	cleaner, ok := c.sb.(ShellCleaner)
	if !ok {
		return TerminateResult{Outcome: TerminationUnknown}, fmt.Errorf("this sandbox cannot end the processes of one command: %w", errors.ErrUnsupported)
	}
	if grace <= 0 {
		grace = DefaultGrace
	}
	return settled(cleaner.CleanupMarked(ctx, c.marker, grace))
}

func (c *custody) interrupt(ctx context.Context) error {
	if err := c.live(); err != nil {
		return err
	}
	c.mu.Lock()
	p := c.proc
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("nothing to interrupt, the command was not launched: %w", ErrNotFound)
	}
	return p.Signal(ctx, int(syscall.SIGINT))
}

// settled makes an outcome out of what a backend says: nothing is never "gone".
func settled(r TerminateResult, err error) (TerminateResult, error) {
	switch r.Outcome {
	case TerminationGone, TerminationSurvivors, TerminationUnknown:
	default:
		r.Outcome = TerminationUnknown
	}
	if err != nil && r.Outcome == TerminationGone {
		r.Outcome = TerminationUnknown
	}
	return r, err
}
