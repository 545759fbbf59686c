package podman

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// A service on another machine is refused before it is asked for anything, whoever has named it: the
// workspace is not there. C051
func TestElsewhere(t *testing.T) {
	ws := t.TempDir()
	for host, from := range map[string]string{
		"ssh://user@127.0.0.1:42222/run/podman/podman.sock": "configuration", "tcp://192.0.2.1:8080": "configuration",
		"tcp://far.example:8080": "configuration", "ssh://far.example": "CONTAINER_HOST", "tcp://[2001:db8::1]:8080": "CONTAINER_HOST",
	} {
		opts := Options{Host: host, StateDir: filepath.Join(t.TempDir(), "state")}
		if from == "CONTAINER_HOST" {
			opts.Host = ""
			opts.Getenv = func(name string) string { return map[string]string{from: host}[name] }
		}
		b, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: ws, Config: sandbox.DefaultConfig()})
		var p *sandbox.Problem
		if !errors.As(err, &p) || !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(p.What, from) ||
			!strings.Contains(p.Rule, "another machine") || p.Remedy == "" {
			t.Errorf("%s: %v", host, err)
		}
		if d := b.Check(t.Context()); d.Usable {
			t.Errorf("%s: usable: %+v", host, d)
		}
	}
}
