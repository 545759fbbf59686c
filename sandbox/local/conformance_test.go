package local

import (
	"os"
	"testing"

	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/backendtest"
)

func TestMain(m *testing.M) { os.Exit(helpertest.Main(m, nil)) }

// The suite, without the walls.
func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Target{
		Name: Name,
		New: func(t testing.TB, o backendtest.Options) sandbox.Backend {
			b, err := New(Options{StateDir: o.StateDir, HelperPath: helpertest.Path(), Logger: o.Logger})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		Adapt: func(_ testing.TB, spec *sandbox.Spec) { backendtest.Unconfined(&spec.Config, DefaultConfig()) },
	})
}
