package bubblewrap

import (
	"os"
	"testing"

	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

// conformance plugs the backend into the suite.
func conformance() backendtest.Target {
	return backendtest.Target{
		Name: Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			needBwrap(t)
			b, err := New(Options{StateDir: o.StateDir, HelperPath: helper(t), Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	}
}

// The suite, as the user that runs the tests and as an ordinary one.
func TestConformance(t *testing.T) { backendtest.Run(t, conformance()) }

func TestConformanceOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		asOrdinaryUser(t)
		return
	}
	backendtest.Run(t, conformance())
}
