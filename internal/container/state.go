package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/workberth/workberth/internal/guest/rendezvous"
	"github.com/workberth/workberth/sandbox"
)

// List tells every sandbox of this user: those on record, as their containers are now, and containers
// of ours that are on no record any more. Without an engine the records are told as they are.
func (b *Backend) List(ctx context.Context) ([]sandbox.Info, error) {
	infos, err := b.keeper.List(ctx)
	if err != nil {
		return nil, err
	}
	if b.opts.Frugal && len(infos) == 0 {
		return nil, nil
	}
	var found []Container
	engine, err := b.connect(ctx)
	if err == nil {
		if found, err = engine.List(ctx, b.ours()); err != nil {
			err = b.unreachable(err)
		}
	}
	if err != nil {
		for i := range infos {
			infos[i].Detail = strings.TrimPrefix(infos[i].Detail+"; "+err.Error(), "; ")
		}
		return infos, ctx.Err()
	}
	byID := make(map[sandbox.ID]Container, len(found))
	for _, c := range found {
		if id, ok := b.sandboxOf(c); ok {
			byID[id] = c
		}
	}
	for i := range infos {
		if infos[i].Config.Engine != b.opts.Address {
			continue // on another engine
		}
		c, ok := byID[infos[i].ID]
		delete(byID, infos[i].ID)
		b.overlay(ctx, engine, &infos[i], c, ok)
	}
	for id, c := range byID {
		infos = append(infos, b.unrecorded(ctx, engine, id, c))
	}
	return infos, nil
}

// overlay corrects what a record says by what the engine says.
func (b *Backend) overlay(ctx context.Context, engine Engine, info *sandbox.Info, c Container, exists bool) {
	switch {
	case !exists:
		if info.State != sandbox.StateRunning {
			info.State, info.Detail = sandbox.StateStopped, "it has no container; one is made when it is used"
		}
	case c.Status == StatusPaused:
		info.State = sandbox.StatePaused
		info.Detail = fmt.Sprintf("somebody has paused container %s; %s unpause %s goes on", c.Name, b.opts.Name, c.Name)
	case info.State == sandbox.StateRunning: // its owner knows best
	case c.Status == StatusRunning:
		info.State, info.Detail = sandbox.StateDead, fmt.Sprintf("container %s runs without an owner; it is ended when it is used or stopped", c.Name)
	default:
		full, err := engine.Inspect(ctx, c.ID)
		if err != nil || full.Status == StatusCreated {
			return
		}
		if full.Exit.Code != 0 || full.Exit.OOM || full.Exit.Error != "" {
			info.State, info.Detail = sandbox.StateDead, "its container "+ending(ctx, engine, full)
		}
	}
}

// unrecorded describes a container of ours whose record is lost.
func (b *Backend) unrecorded(ctx context.Context, engine Engine, id sandbox.ID, c Container) sandbox.Info {
	info := sandbox.Info{
		ID: id, Backend: b.opts.Name, State: sandbox.StateStopped, Scope: sandbox.Scope(c.Labels[labelScope]),
		Workspace: c.Labels[labelWorkspace], ConfigHash: c.Labels[labelConfig], Created: c.Created, LastUsed: c.Created,
		Runtime: map[string]string{"container": c.ID, "name": c.Name},
	}
	switch info.Scope {
	case sandbox.ScopeSession:
		info.Session = c.Labels[labelKey]
	case sandbox.ScopeAgent:
		info.Agent = c.Labels[labelKey]
	case sandbox.ScopeShared:
	}
	b.overlay(ctx, engine, &info, c, true)
	if info.Detail == "" {
		info.Detail = "its record is lost; the container " + c.Name + " tells of it"
	}
	return info
}

// find returns the container of a sandbox of ours; ok is false when there is none.
func (b *Backend) find(ctx context.Context, id sandbox.ID) (engine Engine, c Container, ok bool, err error) {
	if !id.Valid() || id.Backend() != b.opts.Name {
		return nil, Container{}, false, nil
	}
	engine, err = b.connect(ctx)
	if err != nil {
		return nil, Container{}, false, err
	}
	c, err = engine.Inspect(ctx, b.containerName(id))
	switch {
	case errors.Is(err, ErrNotFound):
		return engine, Container{}, false, nil
	case err != nil:
		return nil, Container{}, false, b.unreachable(err)
	}
	return engine, c, b.owns(c, id), nil
}

// end ends all processes of a sandbox's container and waits until they are over.
func (b *Backend) end(ctx context.Context, id sandbox.ID) error {
	engine, c, ok, err := b.find(ctx, id)
	if err != nil || !ok {
		return err
	}
	switch c.Status {
	case StatusRunning, StatusPaused, StatusRestarting:
		return b.unreachable(end(ctx, engine, c.ID))
	default:
		return nil
	}
}

// quell ends the sandbox of a record that another process holds.
func (b *Backend) quell(ctx context.Context, rec sandbox.Record) error {
	return b.end(ctx, rec.Info.ID)
}

// clear ends and removes what a dead owner has left of a claimed sandbox, all but the container.
func (b *Backend) clear(ctx context.Context, claim *sandbox.Claim) error {
	if rec, _ := claim.Record(); rec.InstanceTag != "" || len(rec.PendingSweep) > 0 {
		if err := b.endUnlessPaused(ctx, claim.ID()); err != nil {
			return err
		}
	}
	return clearDoors(ownDir(claim))
}

// endUnlessPaused leaves a paused container alone: who has paused it decides what becomes of it.
func (b *Backend) endUnlessPaused(ctx context.Context, id sandbox.ID) error {
	_, c, ok, err := b.find(ctx, id)
	if err != nil || !ok || c.Status == StatusPaused {
		return err
	}
	return b.end(ctx, id)
}

// clearDoors removes invitations and sockets that nobody listens on any more.
func clearDoors(dir string) error {
	failures := []error{rendezvous.Uninvite(dir)}
	doors, err := filepath.Glob(filepath.Join(escape(dir), "rv-*"))
	failures = append(failures, err)
	for _, door := range doors {
		failures = append(failures, os.RemoveAll(door))
	}
	return errors.Join(failures...)
}

// escape makes a path mean itself in a pattern.
func escape(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

// Discard removes the container of a sandbox that the caller holds by its claim, and that is about to
// be deleted: what sandbox.PruneOptions.Remove is for.
func (b *Backend) Discard(ctx context.Context, claim *sandbox.Claim) error {
	_, spare := b.spared.LoadAndDelete(claim.ID())
	return b.removeStray(ctx, claim.ID(), !spare)
}

// clearAll ends containers of ours that run although nobody holds their sandbox.
func (b *Backend) clearAll(ctx context.Context) error {
	engine, err := b.connect(ctx)
	if err != nil {
		return err
	}
	found, err := engine.List(ctx, b.ours())
	if err != nil {
		return b.unreachable(err)
	}
	var failures []error
	for _, c := range found {
		id, ok := b.sandboxOf(c)
		if !ok || c.Status != StatusRunning {
			continue
		}
		if rec, err := b.registry.Get(id); err == nil && rec.Info.Owner.Alive() {
			continue // the usual case, without a lock
		}
		failures = append(failures, b.claimed(ctx, id, b.endUnlessPaused))
	}
	return errors.Join(failures...)
}

// claimed does something to a sandbox that nobody holds. One that somebody holds is left alone.
func (b *Backend) claimed(ctx context.Context, id sandbox.ID, do func(context.Context, sandbox.ID) error) error {
	claim, err := b.registry.Claim(ctx, id)
	if errors.Is(err, sandbox.ErrInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, id), claim.Leave(ctx))
}

// removeStray removes a container that is on no record, or that is about to be on none, and
// its volume if that is to go too.
func (b *Backend) removeStray(ctx context.Context, id sandbox.ID, volume bool) error {
	engine, c, ok, err := b.find(ctx, id)
	if err != nil || engine == nil {
		return err
	}
	if ok {
		if err := engine.Remove(ctx, c.ID); err != nil {
			return b.unreachable(err)
		}
	}
	if !volume {
		return nil
	}
	return b.removeVolume(ctx, engine, id)
}

// killStray ends a container that is on no record.
func (b *Backend) killStray(ctx context.Context, id sandbox.ID) error {
	if _, err := b.registry.Get(id); !errors.Is(err, sandbox.ErrNotFound) {
		return nil //nolint:nilerr // it is on record, and was dealt with by that
	}
	return b.end(ctx, id)
}
