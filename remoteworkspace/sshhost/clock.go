package sshhost

import "time"

// Clock tells the time and waits. Tests pass their own.
type Clock interface {
	Now() time.Time
	// After delivers once, when d is over.
	After(d time.Duration) <-chan time.Time
}

// systemClock is the machine's.
type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
