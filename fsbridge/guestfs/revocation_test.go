package guestfs_test

import (
	"errors"
	"sync/atomic"
)

// revocation is the notion of an environment's owner that it may no longer be used.
type revocation struct{ gone atomic.Bool }

var errRevoked = errors.New("execution has been revoked")

func (r *revocation) revoke() { r.gone.Store(true) }

func (r *revocation) check() error {
	if r.gone.Load() {
		return errRevoked
	}
	return nil
}
