package main

import (
	"context"
	"fmt"

	"github.com/workberth/workberth/skills"
)

// watchSkills lists the skills, and again after every change, until ctx ends.
func (a *app) watchSkills(ctx context.Context, s *skillsFlags) error {
	ld, err := a.skillLoader(s)
	if err != nil {
		return err
	}
	defer ld.close()
	ws, err := ld.workspace(ctx)
	if err != nil {
		return err
	}
	here, err := ld.gateway()
	if err != nil {
		return err
	}
	there, err := skills.Watch(ctx, ws, ld.workspaceRoots())
	if err != nil {
		return err
	}
	defer there.Close()
	watchers := []*skills.Watcher{there}
	var ours <-chan struct{} // nil where this machine has no roots
	if here != nil {
		w, err := skills.Watch(ctx, here, ld.gatewayRoots())
		if err != nil {
			return err
		}
		defer w.Close()
		watchers, ours = append(watchers, w), w.Changed()
	}
	for {
		l, err := ld.list(ctx, skills.Options{NoHashes: true})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.printSkills(s, l); err != nil {
			return err
		}
		if !s.jsonOut {
			fmt.Fprintln(a.stdout)
		}
		var ok bool
		select {
		case <-ctx.Done():
			return nil
		case _, ok = <-there.Changed():
		case _, ok = <-ours:
		}
		for _, w := range watchers {
			if w.Err() != nil {
				return w.Err()
			}
		}
		if !ok {
			return nil
		}
	}
}
