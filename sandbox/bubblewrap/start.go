package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/sandbox"
)

// How long parts of the start and of the end may take.
const (
	handshakeBound = 10 * time.Second
	// explainBound is how long a bwrap whose connection has ended may take to end
	// itself, before its messages are read.
	explainBound = 2 * time.Second
	endBound     = 10 * time.Second
)

// generation is one life of a sandbox in the making.
type generation struct {
	keeper.Birth
	b       *Backend
	account account
	scratch string
	mounts  []hostmount.Mount
	plan    *plan
	limits  *limits
	note    note
	runtime *process
	conn    *client.Conn
}

// start brings a generation to life. A failure leaves nothing behind.
func (b *Backend) start(ctx context.Context, birth keeper.Birth) (*keeper.Life, error) {
	g := &generation{Birth: birth, b: b}
	account, err := hostmount.AccountFor(birth.Resolved.Spec, b.selfUID(), os.Getegid())
	if err != nil {
		return nil, err
	}
	g.account = account
	limited := make(chan error, 1)
	go func() { limited <- g.limit(true) }() // the kernel takes its time for that
	err = g.prepare()
	if err := errors.Join(err, <-limited); err != nil {
		return nil, errors.Join(err, g.undo())
	}
	if err := g.launch(ctx); err != nil {
		return nil, err
	}
	life := g.life()
	life.Conn, life.Runtime, life.Limits = g.conn, g.runtime, g.limits.each
	return life, nil
}

// life is what is to be said of the generation once bwrap runs.
func (g *generation) life() *keeper.Life {
	config := g.Resolved.Spec.Config
	return &keeper.Life{
		Mounts: hostmount.Table(g.mounts), Workdir: hostmount.Workdir(config, hostmount.WorkspacePath(config)),
		Facts: g.facts(), Refs: []sandbox.ProcessRef{g.runtime.ref}, Scratch: g.scratch, Env: g.plan.env(),
		Release: g.release,
	}
}

// prepare decides everything and makes what the sandbox needs on this machine.
func (g *generation) prepare() error {
	b, spec := g.b, g.Resolved.Spec
	bwrap, err := b.bwrap()
	if err != nil {
		return err
	}
	helper, err := b.helper()
	if err != nil {
		return err
	}
	filter, err := b.filter(spec.Config.SeccompProfile)
	if err != nil {
		return err
	}
	if err := g.sources(); err != nil {
		return err
	}
	if g.mounts, err = hostmount.List(spec, g.scratch); err != nil {
		return err
	}
	if err := hostmount.MakeMountpoints(g.account, g.mounts); err != nil {
		return err
	}
	g.plan = newPlan(b.root, g.Resolved.ID, spec, g.account, g.mounts, filter)
	g.plan.bwrap, g.plan.helper = bwrap, helper
	g.plan.copyHelper = !g.account.Runnable(helper)
	g.plan.helperArgs = helperArgs(g.Tag, hostmount.Table(g.mounts))
	return nil
}

// sources makes the scratch directory, and sees that the account comes to what is
// mounted.
func (g *generation) sources() error {
	spec := g.Resolved.Spec
	if spec.Config.Access == sandbox.AccessNone {
		g.scratch = filepath.Join(g.Claim.Dir(), "scratch")
		if err := os.Mkdir(g.scratch, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the scratch directory: %w", err)
		}
	} else if err := g.account.Reach("workspace", fmt.Sprintf("workspace %q", spec.Workspace), spec.Workspace); err != nil {
		return err
	}
	for _, bind := range spec.Config.Binds {
		if err := g.account.Reach("binds", fmt.Sprintf("bind %q to %q", bind.Source, bind.Target), bind.Source); err != nil {
			return err
		}
	}
	return nil
}

// launch starts bwrap and greets the helper. Root on a machine without user
// namespaces does without.
func (g *generation) launch(ctx context.Context) error {
	err := g.attempt(ctx)
	if errors.Is(err, errNoUserNamespaces) && g.account.UID == 0 && g.account.InsideUID == 0 && g.account.InsideGID == 0 {
		g.b.log.Debug("no user namespace, starting without one", "sandbox", g.Resolved.ID)
		g.plan.userns = false
		err = g.attempt(ctx)
	}
	return err
}

// attempt is one start; a failed one leaves nothing running.
func (g *generation) attempt(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, g.undo())
		}
	}()
	if g.limits == nil { // ended with a failed attempt
		if err := g.limit(g.plan.userns); err != nil {
			return err
		}
	}
	c, err := g.plan.command()
	if err != nil {
		return err
	}
	rt, conn, err := launch(g.plan.bwrap, c, g.account, g.limits.group)
	c.close()
	if err != nil {
		return startFailure(g.plan.bwrap, err)
	}
	g.runtime = rt
	g.Early(g.life())
	if g.conn, err = g.greet(ctx, conn); err == nil {
		err = rt.adopt()
	}
	if err != nil {
		return g.explain(ctx, err)
	}
	g.note.First = rt.processOne()
	return g.note.write(g.Claim.Dir())
}

// limit notes what is about to be made on this machine, and makes the control group.
func (g *generation) limit(userns bool) error {
	dir := g.Claim.Dir()
	g.note = note{Tag: g.Tag}
	if err := g.note.write(dir); err != nil {
		return fmt.Errorf("note what is about to be made: %w", err)
	}
	tell := func(name string, dirs []string) error {
		g.note.Group, g.note.Dirs = name, dirs
		return g.note.write(dir)
	}
	l, err := newLimits(g.Resolved.ID, g.Tag, g.Resolved.Spec.Config.Limits, g.account, userns, tell, g.b.log)
	g.limits = l
	return err
}

// greet waits for the helper to speak, as long as bwrap lives: what it has started
// may keep the connection open without ever using it.
func (g *generation) greet(ctx context.Context, conn net.Conn) (*client.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := g.runtime.Done()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return client.New(ctx, conn, client.Options{
		SkipLimit: -1, HandshakeTimeout: handshakeBound, Build: g.b.build, Logger: g.b.log,
	})
}

// explain says why the helper did not come to life.
func (g *generation) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var version *client.VersionError
	if errors.As(err, &version) {
		return &sandbox.Problem{
			What: "the guest helper does not fit this program", Rule: version.Error(),
			Remedy: "install both from the same release", Err: join(sandbox.ErrUnavailable, err),
		}
	}
	timer := time.NewTimer(explainBound)
	defer timer.Stop()
	select {
	case <-g.runtime.done:
		return failure(g.runtime.stderr.String(), g.runtime.Diagnose(), g.b.settings())
	case <-timer.C:
		return join(sandbox.ErrUnavailable, err)
	}
}

// undo ends what a failed attempt has left.
func (g *generation) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	var failures []error
	if g.conn != nil {
		failures = append(failures, g.conn.Close())
		g.conn = nil
	}
	if g.runtime != nil {
		failures = append(failures, g.runtime.Kill(ctx))
		if g.runtime.processOne().IsZero() {
			failures = append(failures, endTagged(ctx, g.Tag))
		}
		g.runtime = nil
	}
	if g.limits != nil && g.limits.group != nil {
		failures = append(failures, g.limits.group.Remove(ctx))
	}
	g.limits = nil
	failures = append(failures, forget(g.Claim.Dir()))
	return errors.Join(failures...)
}

// facts are what there is to say of this generation in particular.
func (g *generation) facts() map[string]string {
	facts := map[string]string{
		"pid":  strconv.Itoa(g.runtime.ref.PID),
		"user": fmt.Sprintf("%d:%d", g.account.UID, g.account.GID),
		"tag":  g.Tag,
	}
	if !g.plan.userns {
		facts["userNamespace"] = "none: this kernel permits none"
	}
	maps.Copy(facts, g.limits.facts)
	return facts
}

// release frees what the generation holds beside its processes.
func (g *generation) release(ctx context.Context) error {
	var err error
	if g.limits.group != nil {
		err = g.limits.group.Remove(ctx)
	}
	return errors.Join(err, forget(g.Claim.Dir()))
}

// selfUID is the user of this process.
func (b *Backend) selfUID() int { return os.Geteuid() }
