package container

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// Asking again an engine that did not answer, at first and at most.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// runtime is one life of a container: from its start to the end of all its processes.
type runtime struct {
	engine Engine
	name   string // for people
	id     string
	// said is what the helper wrote to its error output, where the engine keeps no log.
	said tail.Buffer

	stop    context.CancelFunc // ends the waiting
	waiting context.Context
	once    sync.Once
	done    chan struct{} // closed when it does not run; end is set
	end     Container
	gone    bool // it was removed
}

var _ keeper.Runtime = (*runtime)(nil)

func newRuntime(b *Backend, engine Engine, id string) *runtime {
	r := &runtime{engine: engine, name: b.opts.Name + " container " + short(id), id: id, done: make(chan struct{}), said: tail.Buffer{Limit: maxQuote}}
	r.waiting, r.stop = context.WithCancel(context.Background())
	return r
}

// watch begins to wait for the end of a container that was started.
func (r *runtime) watch() { r.once.Do(func() { go r.wait() }) }

// wait waits for the end. An engine that does not answer, for one that is being restarted, is asked
// again until it does.
func (r *runtime) wait() {
	defer r.stop()
	defer close(r.done)
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		_, err := r.engine.Wait(r.waiting, r.id)
		if err == nil {
			r.end, err = r.engine.Inspect(r.waiting, r.id)
		}
		switch {
		case errors.Is(err, ErrNotFound):
			r.gone = true
			return
		case err == nil && r.end.Status != StatusRunning && r.end.Status != StatusPaused:
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.waiting.Done():
			timer.Stop()
			return
		}
	}
}

// kill kills every process of a container. One that is just being started or that is just ending may
// refuse that; it is asked again until it either runs or does not. An engine that does not answer, for one
// that is being restarted, is asked until ctx ends.
func kill(ctx context.Context, engine Engine, id string) error {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := engine.Kill(ctx, id)
		if err == nil || errors.Is(err, ErrNotFound) {
			return nil
		}
		c, e := engine.Inspect(ctx, id)
		switch {
		case errors.Is(e, ErrNotFound):
			return nil
		case errors.Is(e, ErrUnreachable):
		case e != nil:
			return err
		case c.Status == StatusExited, c.Status == StatusDead:
			return nil
		case pause == lastRetry:
			return err // it runs, and the engine does not want to
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// end kills every process of a container and waits until they are over.
func end(ctx context.Context, engine Engine, id string) error {
	if err := kill(ctx, engine, id); err != nil {
		return err
	}
	if _, err := engine.Wait(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// Done is closed when nothing runs in the container.
func (r *runtime) Done() <-chan struct{} { return r.done }

// Kill ends everything in the container and returns when that is so.
func (r *runtime) Kill(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	default:
	}
	r.watch() // one that was never started does not run either
	killing, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.waiting, cancel) // it has ended by itself
	defer stop()
	err := kill(killing, r.engine, r.id)
	if err == nil {
		select {
		case <-r.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	select {
	case <-r.done:
		return nil
	default:
		r.stop() // nobody asks any more
		return fmt.Errorf("%s does not end: %w", r.name, err)
	}
}

// Clean reports whether the helper ended by itself and without complaint.
func (r *runtime) Clean() bool {
	select {
	case <-r.done:
		return !r.gone && r.end.ID != "" && r.end.Exit.Code == 0 && r.end.Exit.Error == ""
	default:
		return false
	}
}

// TerminateAfter answers for processes of a life that has ended: none is left, since the kernel has
// ended the container's processes with its first one.
func (r *runtime) TerminateAfter(context.Context, string, time.Duration) (sandbox.TerminateResult, error) {
	select {
	case <-r.done:
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	default:
		return sandbox.TerminateResult{Outcome: sandbox.TerminationUnknown}, fmt.Errorf("%s could not be ended", r.name)
	}
}

// Diagnose says in one line how the container ended.
func (r *runtime) Diagnose() string {
	select {
	case <-r.done:
	default:
		return r.name + " is still running"
	}
	if r.gone {
		return r.name + " was removed"
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookBound)
	defer cancel()
	how := r.name + " " + ending(ctx, r.engine, r.end)
	if text := strings.TrimSpace(r.said.String()); text != "" && !strings.Contains(how, "last lines") {
		how += "; last lines: " + quote(text)
	}
	return how
}

// logLines is how many of its last lines are told of a container that has ended.
const logLines = 5

// startSlack is how much earlier than the engine's idea of a container's start it may have written its
// first line.
const startSlack = time.Second

// ending tells how a container that does not run has ended, with the last lines it wrote.
func ending(ctx context.Context, engine Engine, c Container) string {
	var how string
	switch code := c.Exit.Code; {
	case c.Exit.Error != "":
		how = "could not be started: " + quote(c.Exit.Error)
	case c.Exit.OOM:
		how = fmt.Sprintf("was ended for want of memory (exit code %d)", code)
	case code > 128 && code < 128+65:
		how = fmt.Sprintf("was ended by signal %d (exit code %d)", code-128, code)
	default:
		how = fmt.Sprintf("ended with exit code %d", code)
	}
	var since time.Time
	if !c.Started.IsZero() {
		since = c.Started.Add(-startSlack) // what earlier lives have written explains nothing
	}
	said, err := engine.Logs(ctx, c.ID, logLines, since)
	if err != nil {
		return how
	}
	if text := strings.TrimSpace(string(said)); text != "" {
		how += "; last lines: " + quote(text)
	}
	return how
}

// maxQuote is how much of what a container wrote is told, in bytes.
const maxQuote = 600

// quote makes text that may be hostile fit for a line.
func quote(text string) string {
	if len(text) > maxQuote {
		text = "…" + text[len(text)-maxQuote:]
	}
	return fmt.Sprintf("%+q", text)
}

// short is the part of an id that people write.
func short(id string) string { return id[:min(len(id), 12)] }
