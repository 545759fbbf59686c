package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
)

// newFS is "berth fs".
func newFS(a *app) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "fs",
		Short: "Read and change files through the sandbox's file bridge",
		Long: `Read and change files as a command in the same sandbox sees them.

A relative path starts at the workspace. An absolute path must lie in a mount of
the sandbox; see them with: berth sandbox inspect. Links that leave the mounts are
refused. Writes are atomic. A name that does not print is shown with escapes such
as \x0a; --escaped takes paths in that form.`,
		Args: noCommand,
		RunE: help,
	}
	t.register(cmd.PersistentFlags())
	cmd.PersistentFlags().BoolVar(&t.escaped, "escaped", false, `paths on the command line are in the escaped form that listings show`)
	cmd.AddCommand(
		newFSStat(a, t), newFSCat(a, t), newFSPut(a, t), newFSLs(a, t), newFSTree(a, t), newFSMkdir(a, t),
		newFSMv(a, t), newFSCp(a, t), newFSRm(a, t), newFSHash(a, t), newFSWatch(a, t), newFSGlob(a, t),
		newFSLn(a, t), newFSChmod(a, t),
	)
	return cmd
}

// withBridge opens the target and runs fn on its bridge.
func (a *app) withBridge(ctx context.Context, t *target, fn func(context.Context, fsbridge.Bridge) error) error {
	s, err := a.open(ctx, t)
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(ctx, s.Bridge())
}

// paths undoes the escaped form where --escaped asks for it.
func (t *target) paths(args []string) ([]string, error) {
	if !t.escaped {
		return args, nil
	}
	out := make([]string, len(args))
	for i, s := range args {
		p, err := fsbridge.ParseDisplayPath(s)
		if err != nil {
			return nil, &usageError{err}
		}
		out[i] = p
	}
	return out, nil
}

// eachPath runs fn on every path, goes on after a failure, and returns the last
// one after having reported the others.
func (a *app) eachPath(paths []string, fn func(path string) error) error {
	var last error
	for _, p := range paths {
		if err := fn(p); err != nil {
			if last != nil {
				a.report(last)
			}
			last = err
		}
	}
	return last
}
