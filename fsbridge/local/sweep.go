//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// Sweep removes the temporary files that a bridge with this tag has left behind when it died, in all
// mounts that may be changed and outlive the environment, and reports how many. Only names that
// carry exactly this tag are touched; links are not followed. With the bridge's own tag it leaves
// alone what is in use. It goes on after a failure and returns the first one.
func (b *Bridge) Sweep(ctx context.Context, tag string) (int, error) {
	if err := b.beginWith(ctx, opSweep, tag, nil); err != nil {
		return 0, err
	}
	defer b.end()
	if !rooted.ValidTag(tag) {
		return 0, pathError(opSweep, tag, fmt.Errorf("not a tag of temporary files: %w", fsbridge.ErrInvalid))
	}
	s := sweeper{b: b, ctx: ctx, tag: tag}
	for _, r := range b.tree.Roots() {
		if r.ReadOnly() || r.Mount.Kind == fsbridge.MountTmpfs {
			continue
		}
		if err := s.root(r); err != nil {
			s.fail(pathError(opSweep, r.Mount.Path, err))
		}
		if err := b.check(ctx); err != nil {
			return s.count, pathError(opSweep, r.Mount.Path, err)
		}
	}
	return s.count, s.first
}

type sweeper struct {
	b     *Bridge
	ctx   context.Context // lives for one call
	tag   string
	count int
	first error
	l     *rooted.Ladder
}

func (s *sweeper) fail(err error) {
	if s.first == nil {
		s.first = err
	}
}

func (s *sweeper) root(r *rooted.Root) error {
	h := r.Handle()
	l, err := s.b.tree.Ladder(&h)
	if err != nil {
		return err
	}
	defer l.Close()
	s.l = l
	return s.dir(r)
}

// dir sweeps the lowest directory and those below it.
func (s *sweeper) dir(r *rooted.Root) error {
	dirs, err := s.names()
	if err != nil {
		return err
	}
	for _, name := range dirs {
		if err := s.l.Down(name); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.fail(pathError(opSweep, r.Mount.Path, named(name, below(s.l, err))))
			}
			continue
		}
		here := s.l.Handle()
		if !s.b.tree.OtherRoot(&here) { // that one is swept by itself, if at all
			if err := s.dir(r); err != nil {
				return err
			}
		}
		if err := s.l.Up(); err != nil {
			return err
		}
	}
	return nil
}

// names removes what carries the tag from the lowest directory and returns the directories in it.
func (s *sweeper) names() (dirs []string, err error) {
	if err := s.b.check(s.ctx); err != nil {
		return nil, err
	}
	buf := s.b.tree.Buffer()
	defer s.b.tree.Release(buf)
	var ours []string
	for d := rooted.ReadDir(s.l.FD(), *buf); ; {
		e, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case rooted.Tagged(e.Name, s.tag):
			if !s.b.names.Live(e.Name) {
				ours = append(ours, e.Name)
			}
		case e.Type == fsbridge.TypeDir:
			dirs = append(dirs, e.Name)
		case e.Type == fsbridge.TypeUnknown:
			if st, err := s.b.tree.Lstat(s.l.FD(), e.Name); err == nil && st.IsDir() {
				dirs = append(dirs, e.Name)
			}
		}
	}
	for _, name := range ours {
		if err := s.remove(name); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

func (s *sweeper) remove(name string) error {
	if err := s.b.check(s.ctx); err != nil {
		return err
	}
	here := s.l.Handle()
	st, err := s.b.tree.Lstat(here.FD, name)
	switch {
	case err != nil:
	case st.IsDir():
		err = s.b.removeTree(s.ctx, &here, name, true)
	default:
		err = unix.Unlinkat(here.FD, name, 0)
	}
	if err == nil {
		s.count++
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return named(name, err)
}
