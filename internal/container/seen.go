package container

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// sees checks that what appears inside is what this process has named. An engine on another machine,
// or with a file system of its own, mounts what is called the same there, if need be an empty
// directory that it has made.
func (g *generation) sees(ctx context.Context) error {
	inside := guestfs.New(g.conn, guestfs.Options{Mounts: g.plan.table})
	mounts := slices.Clone(g.plan.mounts)
	// Where the workspace is another one, so are the binds, and it is not about them.
	slices.SortStableFunc(mounts, func(a, b hostmount.Mount) int {
		switch {
		case isWorkspace(a) == isWorkspace(b):
			return 0
		case isWorkspace(a):
			return -1
		default:
			return 1
		}
	})
	for _, m := range mounts {
		if m.Source == "" {
			continue
		}
		here, err := os.Stat(m.Source)
		if err != nil {
			return g.elsewhere(m, err.Error())
		}
		st, ok := here.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		there, err := inside.Stat(ctx, m.Path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return g.elsewhere(m, err.Error())
		case there.Inode != st.Ino || there.Dev != uint64(st.Dev):
			return g.elsewhere(m, "what is mounted there is something else of that name")
		}
	}
	return nil
}

// elsewhere tells of a mount that is not the one that was meant.
func (g *generation) elsewhere(m hostmount.Mount, rule string) error {
	p := &sandbox.Problem{
		What:   fmt.Sprintf("%s is not %s of this machine", m.Path, m.Source),
		Rule:   fmt.Sprintf("the engine runs on another machine or sees other files (%s)", rule),
		Remedy: "use an engine on this machine that sees this file system", Err: sandbox.ErrUnavailable,
	}
	if isWorkspace(m) {
		return &elsewhereError{p}
	}
	return p
}
