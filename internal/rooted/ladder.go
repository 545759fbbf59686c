//go:build linux

package rooted

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Ladder holds a chain of directories, each inside the one before, in a bounded number of
// descriptors, so that a tree of any depth can be visited by handles. When the bound is reached the
// uppermost descriptor is given up; on the way back it is opened again through "..", and proven to
// be the same directory.
type Ladder struct {
	t     *Tree
	rungs []rung
	bound int
	open  int
	low   int // the first rung that may still be open

	base  Handle // what names start from; its descriptor is not used
	names []string
}

type rung struct {
	fd   int // -1 when given up
	stat Stat
}

// ladderBound is how many descriptors a Ladder keeps.
const ladderBound = 64

// ErrMoved reports that a directory was moved elsewhere while its content was visited.
var ErrMoved = fmt.Errorf("the directory was moved during the operation: %w", unix.ESTALE)

// Ladder starts a chain at a directory, opened for reading its entries.
func (t *Tree) Ladder(h *Handle) (*Ladder, error) {
	fd, err := t.OpenDir(h)
	if err != nil {
		return nil, err
	}
	l := &Ladder{t: t, bound: ladderBound, base: *h}
	l.base.owned = false
	if err := l.push(fd); err != nil {
		return nil, err
	}
	return l, nil
}

// FD returns the descriptor of the lowest directory, open for reading.
func (l *Ladder) FD() int { return l.rungs[len(l.rungs)-1].fd }

// Stat describes the lowest directory.
func (l *Ladder) Stat() *Stat { return &l.rungs[len(l.rungs)-1].stat }

// Depth returns how many directories were entered.
func (l *Ladder) Depth() int { return len(l.rungs) - 1 }

// Down enters the directory name of the lowest one, never through a link.
func (l *Ladder) Down(name string) error {
	fd, err := retryOpen(l.FD(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := l.push(fd); err != nil {
		return err
	}
	l.names = append(l.names, name)
	return nil
}

// Names returns the names of the directories that were entered, valid until the next step.
func (l *Ladder) Names() []string { return l.names }

// Handle describes the lowest directory as a handle that lives until the next step. It knows its
// location when the directory that the chain started at does.
func (l *Ladder) Handle() Handle {
	h := Handle{FD: l.FD(), Root: l.base.Root, Stat: *l.Stat(), known: l.base.known}
	if h.known {
		h.names = append(slices.Clip(l.base.names), l.names...)
	}
	return h
}

func (l *Ladder) push(fd int) error {
	r := rung{fd: fd}
	if err := l.t.fstat(fd, &r.stat); err != nil {
		Close(fd)
		return err
	}
	if l.open == l.bound {
		for l.rungs[l.low].fd < 0 {
			l.low++
		}
		Close(l.rungs[l.low].fd)
		l.rungs[l.low].fd = -1
		l.open--
	}
	l.rungs = append(l.rungs, r)
	l.open++
	return nil
}

// Up leaves the lowest directory. After an error the chain can only be closed.
func (l *Ladder) Up() error {
	top := len(l.rungs) - 1
	child := l.rungs[top].fd
	l.rungs = l.rungs[:top]
	l.names = l.names[:len(l.names)-1]
	l.open--
	defer Close(child)
	r := &l.rungs[top-1]
	if r.fd >= 0 {
		return nil
	}
	fd, err := retryOpen(child, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st Stat
	if err := l.t.fstat(fd, &st); err != nil {
		Close(fd)
		return err
	}
	if !st.Same(&r.stat) {
		Close(fd)
		return ErrMoved
	}
	r.fd = fd
	l.open++
	l.low = min(l.low, top-1)
	return nil
}

// Close gives every descriptor back.
func (l *Ladder) Close() {
	for _, r := range l.rungs {
		if r.fd >= 0 {
			Close(r.fd)
		}
	}
	l.rungs = nil
}
