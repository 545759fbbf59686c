package owner

import (
	"sync"
	"time"
)

// activity counts what keeps the owner alive and fires when nothing has for the
// idle time.
type activity struct {
	idle time.Duration
	fire func()

	mu    sync.Mutex
	n     int
	timer *time.Timer
}

// newActivity starts with nothing going on.
func newActivity(idle time.Duration, fire func()) *activity {
	a := &activity{idle: idle, fire: fire}
	a.timer = time.AfterFunc(idle, a.expired)
	return a
}

// expired runs when the timer does; a begin that came first wins.
func (a *activity) expired() {
	a.mu.Lock()
	quiet := a.n == 0
	a.mu.Unlock()
	if quiet {
		a.fire()
	}
}

// begin marks something that keeps the owner alive; end it once or more.
func (a *activity) begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	a.timer.Stop()
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.n--
		if a.n == 0 {
			a.timer.Reset(a.idle)
		}
	})
}

// stop ends the timer.
func (a *activity) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer.Stop()
}
