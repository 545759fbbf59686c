package sandboxtest

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/sandbox"
)

func TestMain(m *testing.M) { os.Exit(helpertest.Main(m, func() error { return goleak.Find() })) }

// Each kind gives a sandbox whose workspace is the root; after a cut, and after its helper was killed,
// there is another one.
func TestPlaces(t *testing.T) {
	Each(t, Kinds(), func(t *testing.T, p *Place) {
		p.Env["COLOUR"] = "blue"
		try := func() {
			t.Helper()
			sb, c, err := p.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Argv: []string{"sh", "-c", "echo $COLOUR > made"}}, nil, sandbox.RunOptions{})
			if err != nil || r.Status.Code != 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			b, err := sb.Bridge(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, end := range []func(){p.Cut, func() {
				if n := p.KillHelper(); n == 0 {
					t.Error("no helper was found")
				}
			}} {
				data, err := os.ReadFile(filepath.Join(p.Root, "made"))
				if seen, bridgeErr := b.ReadFile(t.Context(), "made"); err != nil || bridgeErr != nil || string(data) != "blue\n" || string(seen) != "blue\n" {
					t.Errorf("%q %q, %v, %v", data, seen, err, bridgeErr)
				}
				end()
				if p.Kind.Overland() {
					break
				}
			}
		}
		try()
		try()
	})
}

// SFTP alone.
func TestSFTP(t *testing.T) {
	root, open, cut := SFTP(t)
	b, err := open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFile(t.Context(), "a", []byte("x")); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "a")); string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	cut()
	if _, err := b.Stat(t.Context(), "a"); err == nil {
		t.Error("it goes on after the cut")
	}
}
