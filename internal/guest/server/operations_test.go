package server

import (
	"testing"

	"github.com/workberth/workberth/internal/guest/wire"
)

// Every operation of the protocol is served.
func TestOperationsAreComplete(t *testing.T) {
	for op := wire.OpNone + 1; op.Valid(); op++ {
		if int(op) >= len(operations) || operations[op] == nil {
			t.Errorf("operation %v (%d) has no function", op, op)
		}
	}
}
