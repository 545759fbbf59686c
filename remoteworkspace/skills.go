package remoteworkspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// MethodSkills is the preparation of a workspace's skills.
const MethodSkills Method = "skills"

// LocalSkillsFunc finds the skills of a workspace directory of this machine.
type LocalSkillsFunc func(ctx context.Context, dir string) (skills.Discovery, error)

// LoadSkills finds the skills that a workspace owns: by the LoadSkills of its access where it has
// one, and by local otherwise, which is for workspaces without a binding and for those whose binding
// serves documents only, also after that has stopped. Where the binding loads skills, or may do so
// once it is registered, a machine that cannot be reached is an *UnavailableError: local is not
// asked instead. What is found is facts; skills.Select applies the configuration. Keeps SKL-01,
// SKL-05 to SKL-08.
func (w *Workspaces) LoadSkills(ctx context.Context, dir string, local LocalSkillsFunc) (skills.Discovery, error) {
	d, err := w.loadSkills(ctx, dir, local)
	if err != nil {
		return skills.Discovery{}, &DocumentError{Method: MethodSkills, Dir: dir, Err: err, Hint: hintFor(err)}
	}
	return d, nil
}

func (w *Workspaces) loadSkills(ctx context.Context, dir string, local LocalSkillsFunc) (skills.Discovery, error) {
	guard, err := w.authorize(ctx, Operation{Method: MethodSkills, Dir: dir})
	if err != nil {
		return skills.Discovery{}, err
	}
	load, holds, err := w.opts.Registry.skillLoader(dir)
	if err != nil {
		return skills.Discovery{}, err
	}
	if guard != nil {
		if err := guard(); err != nil {
			return skills.Discovery{}, fmt.Errorf("%w: %w", fsbridge.ErrNotCurrent, err)
		}
	}
	if load == nil {
		if local == nil {
			return skills.Discovery{}, fmt.Errorf("skills of workspace %s are found locally, and local workspaces are not served here: %w", fsbridge.DisplayPath(dir), fsbridge.ErrUnsupported)
		}
		return local(ctx, dir)
	}
	d, err := load(ctx)
	// An answer that comes when the registration is over is not the workspace's any more.
	if gone := holds(); gone != nil {
		return skills.Discovery{}, gone
	}
	var known *UnavailableError
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, &known) || ctx.Err() != nil || errors.Is(err, fsbridge.ErrNotCurrent):
		return skills.Discovery{}, err
	}
	return skills.Discovery{}, &UnavailableError{Dir: dir, State: StateReady, Err: err}
}

// skillLoader returns the LoadSkills in force for dir, and whether its registration still is. Nil
// means that skills are found locally.
func (r *Registry) skillLoader(dir string) (load func(context.Context) (skills.Discovery, error), holds func() error, err error) {
	names, err := r.names(dir)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.find(names)
	switch b.state() {
	case StateReady:
		reg := b.registration
		return reg.access.LoadSkills, func() error { return r.holds(b.dir, reg) }, nil
	case StateStopped:
		if b.loadsSkills {
			return nil, nil, &UnavailableError{Dir: dir, State: StateStopped}
		}
	case StateDeclared: // nobody knows yet whether its access will load skills
		return nil, nil, &UnavailableError{Dir: dir, State: StateDeclared}
	}
	return nil, nil, nil
}
