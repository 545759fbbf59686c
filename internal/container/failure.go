package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// explain says why no helper has called back.
func (g *generation) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var version *client.VersionError
	if errors.As(err, &version) {
		return &sandbox.Problem{
			What: "the guest helper does not fit this program", Rule: version.Error(),
			Remedy: "install both from the same release", Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
		}
	}
	p := &sandbox.Problem{
		What: "the sandbox ended before it was ready", Remedy: "see: berth doctor",
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
	waiting, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()
	select {
	case <-g.runtime.Done():
		p.Rule = g.runtime.Diagnose()
	case <-waiting.Done():
		p.What, p.Rule = "the guest helper does not answer", fmt.Sprintf("%s: %v", g.runtime.name, err)
	}
	return p
}

// createFailure explains a container that cannot be made.
func (b *Backend) createFailure(plan *plan, err error) error {
	if errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return b.unreachable(err)
	}
	p := &sandbox.Problem{
		What: "the container cannot be made", Rule: err.Error(), Remedy: "see: berth doctor",
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
	for _, m := range plan.spec.Mounts {
		if m.Source == "" || !strings.Contains(err.Error(), m.Source) {
			continue
		}
		if _, e := os.Stat(m.Source); e == nil {
			p.Rule = fmt.Sprintf("the engine does not find %s, which is there: it runs on another machine or sees other files (%v)", m.Source, err)
			p.Remedy = "use an engine on this machine that sees this file system"
			return orElsewhere(m.Target, func(target string) (hostmount.Mount, bool) { return hostmount.Find(plan.mounts, target) }, p)
		}
	}
	return p
}

// startFailure explains a container that cannot be started.
func (b *Backend) startFailure(name string, err error) error {
	if errors.Is(err, ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return b.unreachable(err)
	}
	p := &sandbox.Problem{
		What: name + " cannot be started", Rule: err.Error(), Remedy: "see: berth doctor",
		Err: fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err),
	}
	switch text := err.Error(); {
	case strings.Contains(text, "no space left"):
		p.Remedy = "free space where the engine keeps its data: " + b.opts.Name + " system df"
	case strings.Contains(text, "network"):
		p.Remedy = "see that the network exists: " + b.opts.Name + " network ls"
	case strings.Contains(text, "exec format error"):
		p.Remedy = "use an image and a helper for this machine's architecture"
	}
	return p
}
