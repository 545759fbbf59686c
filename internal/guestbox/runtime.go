package guestbox

import (
	"context"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// Runtime is the place that a helper runs in, as its backend knows it. Methods are
// safe for concurrent use.
type Runtime interface {
	// Done is closed when the helper's process has ended.
	Done() <-chan struct{}
	// Kill ends the helper and whatever a generation comprises. It returns when that
	// is certain, or an error. Killing again does nothing.
	Kill(ctx context.Context) error
	// Diagnose says in one line how the helper ended: exit status, signal, last
	// message. It is called after Kill.
	Diagnose() string
	// TerminateAfter ends what carries the marker, once the generation has ended
	// and its helper can no longer be asked. A backend whose processes cannot
	// outlive the generation answers Gone. It never touches another generation.
	TerminateAfter(ctx context.Context, marker string, grace time.Duration) (sandbox.TerminateResult, error)
}
