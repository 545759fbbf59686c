//go:build linux

package reaper

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// answerBound is how long beyond the grace a reaper may take to answer before it is
// taken for stopped: what killing may take, and some more.
const answerBound = killBound + 3*time.Second

// Terminate ends the whole tree; see [proc.Process]. Zero grace means the one of
// the specification, a negative one none.
func (c *command) Terminate(ctx context.Context, grace time.Duration) (proc.TerminateResult, error) {
	if grace == 0 {
		grace = c.spec.Grace
	}
	reply := make(chan proc.TerminateResult, 1)
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	c.requests[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.requests, id)
		c.mu.Unlock()
	}()

	timer := time.NewTimer(max(grace, 0) + c.r.answerBound)
	defer timer.Stop()
	select {
	case <-c.over:
		return c.again(ctx)
	default:
	}
	// A failing send means that the reaper ends, which is seen elsewhere, or that it
	// does not read, which the timer is for.
	_ = c.reaper.conn.send(msgTerminate, terminateOrder{c.turn, id, grace}.append(nil))
	c.signalReaper(unix.SIGCONT) // a hostile command may have stopped it
	for {
		select {
		case result := <-reply:
			if result.Outcome == proc.Gone {
				select { // the reaper's last word follows at once
				case <-c.over:
				case <-ctx.Done():
				}
			}
			return result, nil
		case <-c.over:
			select {
			case result := <-reply:
				return result, nil
			default:
				return c.again(ctx)
			}
		case <-ctx.Done():
			return proc.TerminateResult{Outcome: proc.Unknown}, ctx.Err()
		case <-timer.C:
			c.r.log.Warn("reaper does not answer and is killed", "pid", c.pid)
			c.signalReaper(unix.SIGKILL)
		}
	}
}

// again is the result for a tree that is over. What was left of it then is tried
// again.
func (c *command) again(ctx context.Context) (proc.TerminateResult, error) {
	c.mu.Lock()
	result, detached := c.result, c.detached
	c.mu.Unlock()
	switch {
	case detached:
		return proc.TerminateResult{Outcome: proc.Unknown}, errClosed
	case result.Outcome == proc.Gone:
		return proc.TerminateResult{Outcome: proc.Gone}, nil
	}
	result = c.hunt(ctx)
	c.mu.Lock()
	c.result = result
	c.mu.Unlock()
	return result, ctx.Err()
}
