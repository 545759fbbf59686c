//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// SelfRef needs Linux.
func SelfRef() (ProcessRef, error) { return RefOf(0) }

// RefOf needs Linux.
func RefOf(int) (ProcessRef, error) {
	return ProcessRef{}, fmt.Errorf("identify a process: %w", errors.ErrUnsupported)
}

// Alive is true for every process: nothing is taken over on a guess.
func (r ProcessRef) Alive() bool { return !r.IsZero() }

// Kill needs Linux.
func (r ProcessRef) Kill(context.Context) error {
	return fmt.Errorf("kill %s: %w", r, errors.ErrUnsupported)
}
