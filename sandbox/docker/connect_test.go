package docker

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// Where an engine is, whoever has named it, and that another machine is told from this one. C051
func TestFind(t *testing.T) {
	home := t.TempDir()
	writeContext(t, home, "away", "ssh://user@far.example")
	for name, tc := range map[string]struct {
		host        string
		env         map[string]string
		want, from  string
		away, plain bool
	}{
		"ssh":              {host: "ssh://user@127.0.0.1:42222", from: "configuration", away: true},
		"tcp":              {host: "tcp://192.0.2.1:2375", from: "configuration", away: true, plain: true},
		"tcp by name":      {host: "tcp://far.example:2375", from: "configuration", away: true, plain: true},
		"tcp like local":   {host: "tcp://localhost.far.example:2375", from: "configuration", away: true, plain: true},
		"tcp here":         {host: "tcp://127.0.0.1:2375", from: "configuration", plain: true},
		"tcp here by name": {host: "tcp://localhost:2375", from: "configuration", plain: true},
		"socket":           {host: "unix:///run/docker.sock", from: "configuration"},
		"http":             {host: "http://192.0.2.1:2375", from: "configuration", away: true, plain: true},
		"variable":         {env: map[string]string{"DOCKER_HOST": "ssh://far.example"}, want: "ssh://far.example", from: "DOCKER_HOST", away: true},
		"variable and TLS": {
			env:  map[string]string{"DOCKER_HOST": "tcp://192.0.2.1:2376", "DOCKER_TLS_VERIFY": "1"},
			want: "tcp://192.0.2.1:2376", from: "DOCKER_HOST", away: true,
		},
		"context":        {env: map[string]string{"DOCKER_CONTEXT": "away"}, want: "ssh://user@far.example", from: "away", away: true},
		"context in use": {env: map[string]string{"IN_USE": "away"}, want: "ssh://user@far.example", from: "away", away: true},
	} {
		config := filepath.Join(home, ".docker", "config.json")
		if err := os.WriteFile(config, fmt.Appendf(nil, `{"currentContext": %q}`, tc.env["IN_USE"]), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := find(Options{Host: tc.host, Getenv: func(name string) string {
			if name == "HOME" {
				return home
			}
			return tc.env[name]
		}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := cmp.Or(tc.want, tc.host); e.host != want || !strings.Contains(e.from, tc.from) || container.Elsewhere(e.host) != tc.away || e.plain() != tc.plain {
			t.Errorf("%s: %+v, away %t, plain %t", name, e, container.Elsewhere(e.host), e.plain())
		}
	}
}

// Nobody answers on another machine: the error names it and says why. C051
func TestNobodyThere(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	for _, host := range []string{"ssh://nobody@127.0.0.1:1", "ssh://-oProxyCommand=touch", "ssh://u:secret@far.example"} {
		b, err := New(Options{Host: host, StateDir: filepath.Join(t.TempDir(), "state")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: t.TempDir(), Config: sandbox.DefaultConfig()})
		var p *sandbox.Problem
		if !errors.As(err, &p) || p.Remedy == "" {
			t.Errorf("%s: %v", host, err)
		}
		if d := b.Check(t.Context()); d.Usable {
			t.Errorf("%s: usable: %+v", host, d)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
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
