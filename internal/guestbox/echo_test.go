package guestbox

import (
	"bytes"
	"errors"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// TestEcho reaches the helper also without authority, and not through a closed handle.
func TestEcho(t *testing.T) {
	r := newRig(t)
	keeper, h := r.handle(t), r.handle(t)
	word := []byte("sixteen bytes...")
	h.Revoke("for the test")
	if got, err := h.Echo(t.Context(), word); err != nil || !bytes.Equal(got, word) {
		t.Errorf("echo of a revoked handle: %q, %v", got, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Echo(t.Context(), word); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("echo of a closed handle: %v", err)
	}
	if err := keeper.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Echo(t.Context(), word); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("echo of a sandbox that has ended: %v", err)
	}
}
