//go:build linux

package reaper

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Orphans owns the processes that this process adopts, being a child subreaper
// (see [Harden]) or process 1: what a reaper leaves behind that was killed, and as
// process 1 whatever else loses its parent. It waits for them, so that none stays
// a zombie, and kills them all when a Runner asks for it.
//
// It is able to prove that none is left because the kernel gives an adopted child
// to a process's first thread. That thread runs nothing but [Orphans.Run], so all
// its children are orphans, and reapers are never touched: they are forked by
// another thread that lives as long, since the children of a thread that ends are
// given to the first one as well. When the first thread's wait4 says ECHILD there
// is no orphan.
//
// It serves one Runner.
type Orphans struct {
	reapers  *reapers
	forks    chan func()
	requests chan chan<- proc.TerminateResult
	stopped  chan struct{}
}

// NewOrphans returns an Orphans that is to be run.
func NewOrphans() *Orphans {
	return &Orphans{
		reapers: newReapers(), forks: make(chan func()), requests: make(chan chan<- proc.TerminateResult), stopped: make(chan struct{}),
	}
}

// Run works until ctx ends; before it runs no command starts, and none afterwards.
// It must be called once, on the process's first thread: by the main goroutine of a
// program that locked it to its thread in an init function. Children that this
// thread forked before, or was started with, count as orphans.
func (o *Orphans) Run(ctx context.Context) error {
	if unix.Gettid() != os.Getpid() {
		return errors.New("orphans are looked after by the first thread: lock the main goroutine to it in an init function")
	}
	defer close(o.stopped)
	go o.fork()
	dead := make(chan os.Signal, 1)
	signal.Notify(dead, unix.SIGCHLD)
	defer signal.Stop(dead)

	h := home{slayer: slayer{tree: newTree(os.Getpid(), o.reapers.has)}}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		var due bool
		select {
		case <-ctx.Done():
			return nil
		case <-dead:
		case reply := <-o.requests:
			h.slayer.interval = 0
			h.waiting = append(h.waiting, clearing{reply, h.buried, time.Now().Add(killBound)})
			due = true
		case <-timer.C:
			due = true
		}
		none, passDue := h.reap()
		h.answer(none)
		if len(h.waiting) > 0 && (due || passDue) {
			h.slayer.pass()
			timer.Reset(h.slayer.pause())
		}
	}
}

// fork runs functions on the thread that forks reapers.
func (o *Orphans) fork() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // so that the thread stays
	for {
		select {
		case f := <-o.forks:
			f()
		case <-o.stopped:
			return
		}
	}
}

// onForkThread runs f on the thread that forks reapers. It reports whether f was
// run.
func (o *Orphans) onForkThread(f func()) bool {
	done := make(chan struct{})
	select {
	case o.forks <- func() { defer close(done); f() }:
		<-done
		return true
	case <-o.stopped:
		return false
	}
}

// clear kills every orphan and returns what came of it.
func (o *Orphans) clear() proc.TerminateResult {
	reply := make(chan proc.TerminateResult, 1)
	select {
	case o.requests <- reply:
	case <-o.stopped:
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
	select {
	case result := <-reply:
		return result
	case <-o.stopped:
		return proc.TerminateResult{Outcome: proc.Unknown}
	}
}

// home is the state of Orphans.Run.
type home struct {
	slayer  slayer
	buried  int
	waiting []clearing
}

// clearing is a request to kill every orphan.
type clearing struct {
	reply    chan<- proc.TerminateResult
	buried   int // when it came
	deadline time.Time
}

// reap waits for the orphans that have died. none tells that no orphan is left at
// all; passDue that all those killed are dead.
func (h *home) reap() (none, passDue bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WNOTHREAD|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ECHILD:
			return true, passDue
		case err != nil || pid == 0:
			return false, passDue
		default:
			h.buried++
			passDue = h.slayer.reaped(pid) || passDue
		}
	}
}

// answer answers the requests that have come true or waited too long.
func (h *home) answer(none bool) {
	now := time.Now()
	left := h.waiting[:0]
	for _, p := range h.waiting {
		switch {
		case none:
			p.reply <- proc.TerminateResult{Outcome: proc.Gone, Killed: h.buried - p.buried}
		case now.After(p.deadline):
			p.reply <- proc.TerminateResult{
				Outcome: proc.Survivors, Pids: h.slayer.tree.running(maxPids), Killed: h.buried - p.buried,
			}
		default:
			left = append(left, p)
		}
	}
	h.waiting = left
}
