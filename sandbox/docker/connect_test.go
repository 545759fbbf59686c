package docker

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// An engine on another machine is refused before it is asked for anything, whoever has named it: the
// workspace is not there. C051
func TestElsewhere(t *testing.T) {
	home, ws := t.TempDir(), t.TempDir()
	writeContext(t, home, "away", "ssh://user@far.example")
	for name, tc := range map[string]struct {
		host string
		env  map[string]string
		from string
	}{
		"ssh":              {host: "ssh://user@127.0.0.1:42222", from: "configuration"},
		"tcp":              {host: "tcp://192.0.2.1:2375", from: "configuration"},
		"tcp by name":      {host: "tcp://far.example:2375", from: "configuration"},
		"tcp like local":   {host: "tcp://localhost.far.example:2375", from: "configuration"},
		"http":             {host: "http://192.0.2.1:2375", from: "configuration"},
		"variable":         {env: map[string]string{"DOCKER_HOST": "ssh://far.example"}, from: "DOCKER_HOST"},
		"variable and TLS": {env: map[string]string{"DOCKER_HOST": "tcp://192.0.2.1:2376", "DOCKER_TLS_VERIFY": "1"}, from: "DOCKER_HOST"},
		"context":          {env: map[string]string{"DOCKER_CONTEXT": "away"}, from: "away"},
		"context in use":   {env: map[string]string{"IN_USE": "away"}, from: "away"},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(home, ".docker", "config.json")
			if err := os.WriteFile(config, fmt.Appendf(nil, `{"currentContext": %q}`, tc.env["IN_USE"]), 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := New(Options{Host: tc.host, StateDir: filepath.Join(t.TempDir(), "state"), Getenv: func(name string) string {
				if name == "HOME" {
					return home
				}
				return tc.env[name]
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: ws, Config: sandbox.DefaultConfig()})
			var p *sandbox.Problem
			if !errors.As(err, &p) || !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(p.What, tc.from) ||
				!strings.Contains(p.Rule, "another machine") || p.Remedy == "" {
				t.Errorf("error %v", err)
			}
			if d := b.Check(t.Context()); d.Usable {
				t.Errorf("usable: %+v", d)
			}
		})
	}
}

// writeContext makes a context of the docker program.
func writeContext(t *testing.T, home, name, host string) {
	t.Helper()
	dir := filepath.Join(home, ".docker", "contexts", "meta", fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	meta := fmt.Sprintf(`{"Name": %q, "Endpoints": {"docker": {"Host": %q}}}`, name, host)
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(meta), 0o600); err != nil {
		t.Fatal(err)
	}
}
