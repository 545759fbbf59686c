package podman

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// Where a service is, whoever has named it, and that another machine is told from this one. C051
func TestFind(t *testing.T) {
	for host, tc := range map[string]struct {
		from string
		away bool
	}{
		"ssh://user@127.0.0.1:42222/run/podman/podman.sock": {"configuration", true},
		"tcp://192.0.2.1:8080":                              {"configuration", true},
		"tcp://[::1]:8080":                                  {"configuration", false},
		"unix:///run/podman/podman.sock":                    {"CONTAINER_HOST", false},
		"ssh://far.example":                                 {"CONTAINER_HOST", true},
		"tcp://[2001:db8::1]:8080":                          {"CONTAINER_HOST", true},
	} {
		opts := Options{Host: host, Getenv: func(string) string { return "" }}
		if tc.from == "CONTAINER_HOST" {
			opts.Host, opts.Getenv = "", func(name string) string { return map[string]string{tc.from: host}[name] }
		}
		if e := find(opts); e.host != host || e.from != tc.from || container.Elsewhere(e.host) != tc.away {
			t.Errorf("%s: %+v, away %t", host, e, container.Elsewhere(e.host))
		}
	}
}

// Nobody answers on another machine: the error says why. C051
func TestNobodyThere(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip(err)
	}
	for _, host := range []string{"ssh://nobody@127.0.0.1:1", "ssh://nobody@127.0.0.1:1/run/podman/podman.sock", "ssh://-oProxyCommand=touch/s", "ftp://far.example"} {
		b, err := New(Options{Host: host, StateDir: filepath.Join(t.TempDir(), "state")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Ensure(t.Context(), sandbox.Spec{Scope: sandbox.ScopeSession, Session: "s", Workspace: t.TempDir(), Config: sandbox.DefaultConfig()})
		var p *sandbox.Problem
		if !errors.As(err, &p) || !errors.Is(err, sandbox.ErrUnavailable) && !errors.Is(err, sandbox.ErrRefused) || p.Remedy == "" {
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
