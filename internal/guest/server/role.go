package server

import (
	"sync/atomic"
	"time"
)

// role says which goroutine reads the connection. It runs short calls itself, since
// waking another goroutine would cost more than the call. When such a call takes
// long, or knows that it will wait, another goroutine is started to read, and the
// first one ends with its call: a slow call holds up no other for more than about
// two patience.
type role struct {
	start func() // starts a goroutine that reads

	// turn is even while the goroutine reads and odd while it runs a call. Who
	// raises it from odd to even decides who reads on.
	turn  atomic.Uint64
	armed atomic.Bool
	seen  uint64 // the turn at the last look; only look uses it
	timer *time.Timer
}

// patience is how long a call may run on the goroutine that reads.
const patience = time.Millisecond

func newRole(start func()) *role {
	r := &role{start: start}
	r.timer = time.AfterFunc(time.Hour, r.look)
	r.timer.Stop()
	return r
}

// leave says that the goroutine that reads runs a call, and returns the turn.
func (r *role) leave() uint64 {
	turn := r.turn.Add(1)
	r.arm()
	return turn
}

// resume says that the call of that turn is over and reports whether the goroutine
// goes on reading.
func (r *role) resume(turn uint64) bool { return r.turn.CompareAndSwap(turn, turn+1) }

// pass lets another goroutine read, if the call of that turn runs on the one that
// did. Turn zero is that of calls that never do.
func (r *role) pass(turn uint64) {
	if turn != 0 && r.turn.CompareAndSwap(turn, turn+1) {
		r.start()
	}
}

// arm makes sure that somebody looks. The timer runs only while calls come in.
func (r *role) arm() {
	if !r.armed.Load() && r.armed.CompareAndSwap(false, true) {
		r.timer.Reset(patience)
	}
}

// look passes the role on when the same call runs as at the last look.
func (r *role) look() {
	turn := r.turn.Load()
	running := turn%2 == 1
	if running && turn == r.seen {
		r.pass(turn)
		running = false
	}
	idle := !running && turn == r.seen
	r.seen = turn
	if !idle {
		r.timer.Reset(patience)
		return
	}
	r.armed.Store(false)
	if r.turn.Load() != turn {
		r.arm()
	}
}

// stop ends the looking.
func (r *role) stop() {
	r.armed.Store(true)
	r.timer.Stop()
}
