//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// listen acts on what the reaper says, until it is gone.
func (c *command) listen() {
	gone := false
	for !gone {
		kind, payload, fds, err := c.reaper.conn.recv(maxReply)
		closeFDs(fds)
		if err == nil {
			gone, err = c.hear(kind, payload)
		}
		if err != nil {
			break
		}
	}
	c.mu.Lock()
	detached := c.detached
	c.mu.Unlock()
	switch {
	case gone:
		c.finish(proc.TerminateResult{Outcome: proc.Gone})
		if detached || c.large || c.spec.KeepDescendants {
			c.r.discardReaper(c.reaper)
		} else {
			c.r.stock.give(c.reaper)
		}
	case detached:
		_ = c.reaper.conn.Close()
		c.r.reapers.release(c.reaper.pid)
		c.setStatus(proc.Status{Unknown: true, Code: unknownCode, Reason: "the helper ended before the command did"})
		c.finish(proc.TerminateResult{Outcome: proc.Unknown})
	default:
		_ = c.reaper.conn.Close()
		c.lost()
	}
}

// hear acts on one message. gone means that it was the last one.
func (c *command) hear(kind message, payload []byte) (gone bool, err error) {
	switch kind {
	case msgForking:
		c.mu.Lock()
		c.forking = true
		c.mu.Unlock()
	case msgStarted:
		pid, err := decodeNumber(payload)
		if err != nil {
			return false, err
		}
		if pid <= 0 || !c.begin(pid) {
			return false, fmt.Errorf("unexpected start of process %d", pid)
		}
	case msgFailed:
		f, err := decodeFailure(payload)
		if err != nil {
			return false, err
		}
		if f.what == "" {
			f.what = c.spec.Argv[0]
		}
		c.tell(f.err())
		return true, nil
	case msgExited:
		s, err := decodeStatus(payload)
		if err != nil {
			return false, err
		}
		c.setStatus(s)
	case msgTerminated:
		t, err := decodeTerminated(payload)
		if err != nil {
			return false, err
		}
		c.mu.Lock()
		reply := c.requests[t.id]
		delete(c.requests, t.id)
		c.mu.Unlock()
		if reply != nil {
			reply <- t.result
		}
	case msgGone:
		return true, nil
	default:
		return false, fmt.Errorf("unknown message %d", kind)
	}
	return false, nil
}

// begin takes note that the command runs; it does so once.
func (c *command) begin(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid != 0 {
		return false
	}
	c.pid, c.running = pid, true
	c.tell(nil)
	return true
}

// tell tells who waits for the start what came of it; the first word counts.
func (c *command) tell(err error) {
	select {
	case c.started <- err:
	default:
	}
}

// lost is what happens when the reaper ends without a word: somebody killed it.
// Its descendants are this process's orphans now, or nobody's.
func (c *command) lost() {
	c.r.reapers.signal(c.reaper.pid, unix.SIGKILL) // if it only hung up
	end := c.r.reapers.bury(c.reaper.pid)
	reason := obituary(end)
	result := c.hunt(context.Background())
	switch result.Outcome {
	case proc.Gone:
		reason += "; its processes were ended"
	case proc.Survivors:
		reason += fmt.Sprintf("; processes are left: %v", result.Pids)
	default:
		reason += "; what became of its processes is not known"
	}
	c.r.log.Warn("reaper lost", "pid", c.pid, "reason", reason)
	// A command that killed its reaper before that could say so was started; one
	// whose reaper died earlier was not.
	c.mu.Lock()
	forking := c.forking
	c.mu.Unlock()
	switch {
	case forking:
		c.tell(nil)
	case end.Exited() && end.ExitStatus() == exitRuntime:
		c.tell(&proc.StartError{Reason: proc.LimitReached, What: c.spec.Argv[0], Err: errors.New("no room for its reaper's threads or memory")})
	default:
		c.tell(&proc.StartError{Reason: proc.Internal, What: c.spec.Argv[0], Err: errors.New(reason)})
	}
	c.setStatus(proc.Status{Unknown: true, Code: unknownCode, Reason: reason})
	c.finish(result)
}

// hunt ends what a killed reaper left behind.
func (c *command) hunt(ctx context.Context) proc.TerminateResult {
	if c.r.orphans != nil {
		return c.r.orphans.clear()
	}
	if c.spec.Marker == "" {
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
	s := search{carried: []string{proc.MarkerVar + "=" + c.spec.Marker}, own: c.r.reapers}
	result, err := s.end(ctx, -1)
	if err != nil {
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
	return result
}
