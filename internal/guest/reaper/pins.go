//go:build linux

package reaper

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxPins is how many processes are held at a time; what is left over is found
	// by the next search.
	maxPins = 512
	// pollSlice bounds how long a wait does not look at its context.
	pollSlice = 50 * time.Millisecond
)

// pin holds a process, so that its number cannot come to mean another one.
type pin struct {
	pid  int
	fd   int // -1 where the kernel has no pidfds
	dead bool
}

type pins []*pin

// pin holds the processes of a set that are still what they were: with the parent
// they had, or adopted by a reaper or init meanwhile.
func (q quarry) pin() pins {
	held := make(pins, 0, min(len(q), maxPins))
	for pid, ppid := range q {
		if len(held) == maxPins {
			break
		}
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == unix.ESRCH:
			continue
		case err != nil:
			fd = -1
		}
		st, err := readStat(pid)
		if err != nil || st.ppid != ppid {
			// Orphaned since: the next search sees it where it is now.
			if fd >= 0 {
				_ = unix.Close(fd)
			}
			continue
		}
		held = append(held, &pin{pid: pid, fd: fd})
	}
	return held
}

// signal sends signals to each.
func (ps pins) signal(sigs ...unix.Signal) {
	for _, p := range ps {
		for _, sig := range sigs {
			if p.fd >= 0 {
				if err := unix.PidfdSendSignal(p.fd, sig, nil, 0); err == nil || err == unix.ESRCH {
					continue
				}
			}
			_ = unix.Kill(p.pid, sig) // who refuses is found again
		}
	}
}

// await waits until all are dead, the time has come, or ctx ends.
func (ps pins) await(ctx context.Context, until time.Time) {
	for {
		var fds []unix.PollFd
		var watched pins
		slice := pollSlice
		alive := false
		for _, p := range ps {
			switch {
			case p.dead:
			case p.fd >= 0:
				alive = true
				fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
				watched = append(watched, p)
			default:
				slice = 5 * time.Millisecond // nothing to wait on: look again
				st, err := readStat(p.pid)
				p.dead = err != nil || st.dead()
				alive = alive || !p.dead
			}
		}
		left := time.Until(until)
		if !alive || left <= 0 || ctx.Err() != nil {
			return
		}
		if _, err := unix.Poll(fds, int(min(left, slice)/time.Millisecond)+1); err != nil && err != unix.EINTR {
			return
		}
		for i, p := range watched {
			p.dead = p.dead || fds[i].Revents != 0
		}
	}
}

// close lets go of all and returns how many are known to be dead.
func (ps pins) close() (dead int) {
	for _, p := range ps {
		if p.dead {
			dead++
		}
		if p.fd >= 0 {
			_ = unix.Close(p.fd)
		}
	}
	return dead
}
