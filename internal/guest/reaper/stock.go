//go:build linux

package reaper

import (
	"log/slog"
	"sync"

	"github.com/workberth/workberth/internal/guest/proc"
)

// maxIdle is how many reapers wait for commands: one for the next command, one that
// comes back from the last.
const maxIdle = 2

// stock keeps idle reapers, so that the start of a command does not wait for the
// start of a reaper. One that has nothing left of its last command comes back; a
// new one is made in the background when there is none.
type stock struct {
	spawn   func() (*child, error)
	discard func(*child)
	work    *sync.WaitGroup // counts what goes on in the background
	log     *slog.Logger
	most    int // zero keeps none

	mu     sync.Mutex
	closed bool
	idle   []*child
	fill   *fill // under way, or nil
}

// fill is an idle reaper that is being started.
type fill struct {
	claimed bool
	ready   chan *child // gets it, or nil, if it was claimed
}

// take returns an idle reaper for a command with these limits, or waits for the one
// that is being started unless another command does already. It returns nil when
// there is none.
func (s *stock) take(shared proc.Limits) *child {
	for {
		c, f := s.claim()
		if f != nil {
			c = <-f.ready
		}
		switch {
		case c == nil:
			return nil
		case c.fits(shared) && c.conn.alive():
			return c
		}
		s.discard(c)
	}
}

// claim takes an idle reaper off the list, or claims the one that is being started.
func (s *stock) claim() (*child, *fill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.idle); {
	case n > 0:
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return c, nil
	case s.fill != nil && !s.fill.claimed:
		s.fill.claimed = true
		return nil, s.fill
	}
	return nil, nil
}

// give takes a reaper that has nothing to do.
func (s *stock) give(c *child) {
	s.mu.Lock()
	keep := !s.closed && len(s.idle) < s.most
	if keep {
		s.idle = append(s.idle, c)
	}
	s.mu.Unlock()
	if !keep {
		s.discard(c)
	}
}

// refill makes sure that an idle reaper is there or about to be.
func (s *stock) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.most == 0 || s.fill != nil || len(s.idle) > 0 {
		return
	}
	f := &fill{ready: make(chan *child, 1)}
	s.fill = f
	s.work.Go(func() {
		c, err := s.spawn()
		if err != nil {
			s.log.Debug("no idle reaper", "error", err) // the next start makes its own
		}
		s.mu.Lock()
		s.fill = nil
		claimed := f.claimed
		s.mu.Unlock()
		switch {
		case claimed:
			f.ready <- c
		case c != nil:
			s.give(c)
		}
	})
}

// close ends the idle reapers, and keeps none from now on.
func (s *stock) close() {
	s.mu.Lock()
	s.closed = true
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		s.discard(c)
	}
}

// ready returns how many reapers are idle.
func (s *stock) ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.idle)
}
