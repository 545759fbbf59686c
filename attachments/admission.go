package attachments

import (
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/fsbridge"
)

// Policy says which media a harness may get.
type Policy struct {
	// NoRead: the tool policy lets nothing be read. WorkspaceOnly: nothing outside the
	// workspace may be read. Either yields no path.
	NoRead, WorkspaceOnly bool
	// Types are the media types allowed, such as "image/*" and "application/pdf", without
	// parameters. Nil allows all.
	Types []string
	// MaxFile is the configured media limit, in bytes; see LimitInForce.
	MaxFile int64
	// Roots are directories of this machine below which files outside the media store may be
	// named to a local harness. None by default.
	Roots []string
}

// clone detaches a policy from its original.
func (p Policy) clone() Policy {
	p.Types, p.Roots = slices.Clone(p.Types), slices.Clone(p.Roots)
	return p
}

// allow refuses what the policy does not let through.
func (p Policy) allow(mediaType string, size int64) error {
	if limit := LimitInForce(p.MaxFile); size > limit {
		return &fsbridge.LimitError{What: "file size", Limit: limit, Actual: size}
	}
	if p.Types == nil {
		return nil
	}
	plain, _, _ := strings.Cut(mediaType, ";")
	plain = strings.TrimSpace(plain)
	for _, pattern := range p.Types {
		if ok, err := path.Match(pattern, plain); err == nil && ok {
			return nil
		}
	}
	return fmt.Errorf("the media policy does not allow %s: %w", plainType(plain), ErrInvalid)
}

// Situation is where the turn runs, as far as that keeps this machine's paths from it. Each
// of these has its own way to files. Keeps ATT-13.
type Situation struct {
	// RemoteTransport: the harness reaches its runtime on another machine.
	RemoteTransport bool
	// RemoteWorkspace: the workspace root is on another machine.
	RemoteWorkspace bool
	// WorkspaceAdapter: an adapter is registered for the workspace.
	WorkspaceAdapter bool
	// Sandboxed: commands run in a sandbox.
	Sandboxed bool
}

// AdmissionOptions direct Admit.
type AdmissionOptions struct {
	// Store is the host's media store. Needed.
	Store *mediastore.Store
	// Media are the original facts of the input, images included: not what is left of them
	// when images have been projected to the native runtime.
	Media []MediaFact
	// Deferred resolves facts whose transcript record was deferred. Nil: there are none.
	Deferred func(ctx context.Context) ([]MediaFact, error)
	// Policy is the media and tool policy at admission.
	Policy Policy
	// CurrentPolicy tells the policy in force now; it is asked for older messages. Nil: the
	// policy does not change.
	CurrentPolicy func() Policy
	// Authority is the host's authority for this attempt, captured at admission. Needed.
	Authority fsbridge.AssertFunc
	// Situation is where the turn runs.
	Situation Situation
	// Logger is told which files were left out, and why. Nil discards.
	Logger *slog.Logger
}

// Admission is one admitted input: what it came with, and the policy and authority of that
// moment. It is safe for concurrent use and never changes. Keeps ATT-03.
type Admission struct {
	opts AdmissionOptions
	log  *slog.Logger
}

// Admit captures an input. Everything given is copied.
func Admit(opts AdmissionOptions) (*Admission, error) {
	switch {
	case opts.Store == nil:
		return nil, fmt.Errorf("attachments: no media store: %w", ErrInvalid)
	case opts.Authority == nil:
		return nil, fmt.Errorf("attachments: an input is admitted under an authority: %w", ErrInvalid)
	}
	opts.Media, opts.Policy = slices.Clone(opts.Media), opts.Policy.clone()
	a := &Admission{opts: opts, log: opts.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	return a, nil
}

// ResolveInputMedia gives the original media facts of the input, images that projection has
// removed elsewhere included, and those whose record was deferred. The result belongs to the
// caller. It changes nothing that is recorded and grants no permission to read a file. It
// fails when the host's authority is gone, before and after anything was asked. Keeps ATT-35
// to ATT-38.
func (a *Admission) ResolveInputMedia(ctx context.Context) ([]MediaFact, error) {
	if err := current(ctx, a.opts.Authority); err != nil {
		return nil, err
	}
	media := slices.Clone(a.opts.Media)
	if a.opts.Deferred != nil {
		more, err := a.opts.Deferred(ctx)
		if err != nil {
			return nil, fmt.Errorf("media whose record was deferred: %w", err)
		}
		media = append(media, more...)
		if err := current(ctx, a.opts.Authority); err != nil {
			return nil, err
		}
	}
	return media, nil
}

// OriginalMedia asks a host for the original facts of an input. An older host, without the
// call, has only those of the attempt: nothing is reconstructed. Keeps ATT-39.
func OriginalMedia(ctx context.Context, resolve func(context.Context) ([]MediaFact, error), attempt []MediaFact) ([]MediaFact, error) {
	if resolve == nil {
		return slices.Clone(attempt), nil
	}
	return resolve(ctx)
}
