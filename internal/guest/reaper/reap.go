//go:build linux

package reaper

import (
	"io"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// controlFD is where a reaper finds its connection to the helper.
const controlFD = 3

// warmThreads is how many threads of a reaper can be in system calls at a time.
const warmThreads = 2

// exit statuses of the private roles, for a person who looks at a process list.
const (
	exitDone   = 0
	exitFailed = 1
	// exitRuntime is how the Go runtime ends a program that it cannot give threads
	// or memory to. Before a command is started a reaper has hardly another reason.
	exitRuntime = 2
)

// reapMain is the role of a reaper. It waits for an order, runs the command until
// its whole tree is gone, and is then free for the next one: with no child left
// there is nothing of the last command that the next could meet.
func reapMain() int {
	if err := Harden(reaperName); err != nil {
		return exitFailed
	}
	defaultSignals()
	// Should a command stop this process, it goes on when the helper has ended, and
	// sees that. (That it was merely the thread which forked it does no harm.)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGCONT), 0, 0, 0)
	control, err := newConn(controlFD)
	if err != nil {
		return exitFailed
	}
	c := line{control, controlFD}
	// One thread waits in wait4, one for events, one acts: no further one will be
	// needed, as long as the last uses raw calls. They have to be there before the
	// command is, which may leave no room for them.
	Warm(warmThreads)
	orders := make(chan order)
	go receive(c, orders)
	for o := range orders {
		if o.kind != msgStart || len(o.fds) < fileKeep {
			closeFDs(o.fds)
			continue // too late for the last command
		}
		s, err := decodeStart(o.payload)
		if err != nil {
			return exitFailed
		}
		if more := serveOne(c, s, o.fds, orders); !more {
			break
		}
	}
	return exitDone
}

// serveOne runs one command until nothing of it is left. It reports whether this
// process may run another one.
func serveOne(c line, o startOrder, fds []int, orders <-chan order) (more bool) {
	showMarker(o.spec.Marker)
	defer showMarker("")
	pid, failure := start(o.spec, fds[:fileKeep], func() { _ = c.send(msgForking, nil) })
	if failure != nil {
		closeFDs(fds[fileKeep:])
		return c.send(msgFailed, failure.append(nil)) == nil
	}
	deaths, none := make(chan death, 64), make(chan struct{})
	go wait(deaths, none)
	r := &reap{
		c: c, turn: o.turn, spec: o.spec, child: pid, keep: fds[fileKeep:],
		orders: orders, deaths: deaths, none: none,
	}
	r.report(msgStarted, appendNumber(nil, pid))
	r.run()
	return r.orders != nil && !r.spec.KeepDescendants
}

// order is a message from the helper.
type order struct {
	kind    message
	payload []byte
	fds     []int
}

// death is a process that has been waited for.
type death struct {
	pid    int
	status unix.WaitStatus
}

// phase is how far the end of the tree has come.
type phase int

const (
	phaseRunning   phase = iota
	phaseAsked           // SIGTERM has been sent, the grace runs
	phaseKilling         // passes of SIGKILL
	phaseSurvivors       // still passes, but nobody waits for them any more
)

// reap is the state of a reaper. Everything is done by the goroutine in run.
type reap struct {
	c    line
	turn uint64
	spec proc.Spec
	keep []int // reading ends of the command's output, if it is to be kept

	orders <-chan order // nil once the helper is gone
	deaths <-chan death
	none   <-chan struct{} // closed at ECHILD, after the last death

	child    int
	ended    bool // the direct child has been waited for
	buried   int  // processes waited for
	phase    phase
	deadline time.Time // of the phase
	slayer   slayer
	timer    *time.Timer
	waiting  []request
}

// request is an unanswered terminateOrder.
type request struct {
	id     uint64
	buried int // when it came
}

// receive hands on what the helper sends, and closes orders at the end.
func receive(c line, orders chan<- order) {
	defer close(orders)
	for {
		kind, payload, fds, err := c.recv(maxSpec)
		if err != nil {
			return
		}
		orders <- order{kind, payload, fds}
	}
}

// wait reaps until there is no child left. After that there never will be one,
// since only the direct child was forked here.
func wait(deaths chan<- death, none chan<- struct{}) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			close(none)
			return
		}
		deaths <- death{pid, status}
		runtime.Gosched() // to who waits for it, before this thread is away again
	}
}

// run acts on events until the tree is gone.
func (r *reap) run() {
	r.slayer.tree = newTree(0, nil)
	r.timer = time.NewTimer(time.Hour)
	r.timer.Stop()
	defer r.timer.Stop()
	for {
		// What has died comes before ECHILD, which is reported last.
		select {
		case d := <-r.deaths:
			r.bury(d)
			continue
		default:
		}
		select {
		case d := <-r.deaths:
			r.bury(d)
		case o, ok := <-r.orders:
			if !ok {
				r.orders = nil
				r.abandoned()
				break
			}
			closeFDs(o.fds)
			r.obey(o)
		case <-r.timer.C:
			r.next()
		case <-r.none:
			r.drainDeaths()
			r.answer(proc.TerminateResult{Outcome: proc.Gone})
			r.report(msgGone, nil)
			return
		}
	}
}

func (r *reap) drainDeaths() {
	for {
		select {
		case d := <-r.deaths:
			r.bury(d)
		default:
			return
		}
	}
}

// report sends a message. A helper that is gone gets none: the end of the
// connection is an order of its own.
func (r *reap) report(kind message, payload []byte) { _ = r.c.send(kind, payload) }

// obey does what the helper asks, if it is about this command.
func (r *reap) obey(o order) {
	switch o.kind {
	case msgSignal:
		if s, err := decodeSignal(o.payload); err == nil && s.turn == r.turn && !r.ended {
			_ = rawKill(-r.child, unix.Signal(s.signal)) // it may end at this moment
		}
	case msgTerminate:
		if t, err := decodeTerminate(o.payload); err == nil && t.turn == r.turn {
			r.waiting = append(r.waiting, request{t.id, r.buried})
			r.terminate(t.grace)
		}
	}
}

// abandoned is what happens when the helper is gone: its command ends, unless it
// is to be kept.
func (r *reap) abandoned() {
	if !r.spec.KeepDescendants {
		r.terminate(r.spec.Grace)
		return
	}
	for _, fd := range r.keep {
		go discard(fd)
	}
}

// discard reads what a kept tree writes, so that it neither blocks nor gets
// SIGPIPE when the helper is gone.
func discard(fd int) {
	f := os.NewFile(uintptr(fd), "output")
	_, _ = io.Copy(io.Discard, f) // to the end, or until nothing can be read
	_ = f.Close()
}

// bury takes note of a death.
func (r *reap) bury(d death) {
	r.buried++
	if d.pid == r.child && !r.ended {
		r.ended = true
		r.reportExit(d.status)
	}
	if r.phase >= phaseKilling && r.slayer.reaped(d.pid) {
		r.kill()
	}
}

// reportExit tells how the direct child ended, and begins to end what it left
// behind unless that is to be kept.
func (r *reap) reportExit(ws unix.WaitStatus) {
	s := proc.Status{Code: ws.ExitStatus()}
	if ws.Signaled() {
		s = proc.Status{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal())}
	}
	alone := rawChildless()
	if !alone {
		s.Leftover = len(r.slayer.tree.running(math.MaxInt32))
	}
	r.report(msgExited, wire.AppendStatus(nil, s))
	if !alone && !r.spec.KeepDescendants {
		r.terminate(r.spec.Grace)
	}
}

// terminate begins to end the tree, or makes the end come sooner.
func (r *reap) terminate(grace time.Duration) {
	now := time.Now()
	switch r.phase {
	case phaseRunning:
		if grace < 0 {
			r.beginKilling()
			return
		}
		r.ask()
		r.phase = phaseAsked
		r.deadline = now.Add(grace)
		r.timer.Reset(grace)
	case phaseAsked:
		if at := now.Add(max(grace, 0)); at.Before(r.deadline) {
			r.deadline = at
			r.timer.Reset(max(grace, 0))
		}
	case phaseKilling:
	case phaseSurvivors:
		r.beginKilling()
	}
}

// ask sends SIGTERM to every process, and SIGCONT so that a stopped one sees it.
// Interactive shells ignore SIGTERM; on a terminal SIGHUP tells them the same.
func (r *reap) ask() {
	sigs := []unix.Signal{unix.SIGTERM, unix.SIGCONT}
	if r.spec.TTY != nil {
		sigs = []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGCONT}
	}
	if found := r.slayer.tree.spread(termRounds, sigs...); len(found) == 0 && !r.ended {
		for _, sig := range sigs { // no /proc to walk
			_ = rawKill(-r.child, sig)
		}
	}
}

func (r *reap) beginKilling() {
	r.phase = phaseKilling
	r.deadline = time.Now().Add(killBound)
	r.slayer.interval = 0
	r.kill()
}

// kill makes one pass.
func (r *reap) kill() {
	r.slayer.pass()
	if len(r.slayer.awaited) == 0 && !r.ended {
		_ = rawKill(-r.child, unix.SIGKILL) // no /proc to walk
	}
	r.timer.Reset(r.slayer.pause())
}

// next acts when time has passed.
func (r *reap) next() {
	switch r.phase {
	case phaseRunning:
	case phaseAsked:
		r.beginKilling()
	case phaseKilling:
		if time.Now().Before(r.deadline) {
			r.kill()
			return
		}
		r.phase = phaseSurvivors
		r.answer(proc.TerminateResult{Outcome: proc.Survivors, Pids: r.slayer.tree.running(maxPids)})
		r.kill()
	case phaseSurvivors:
		r.kill()
	}
}

// answer answers everyone who waits for the end of the tree.
func (r *reap) answer(result proc.TerminateResult) {
	for _, q := range r.waiting {
		result.Killed = r.buried - q.buried
		r.report(msgTerminated, terminated{q.id, result}.append(nil))
	}
	r.waiting = nil
}
