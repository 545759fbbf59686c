package main

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/sandbox/docker"
	"github.com/workberth/workberth/sandbox/local"
	"github.com/workberth/workberth/sandbox/podman"
	"github.com/workberth/workberth/sandbox/ssh"
)

// helperOptions tell where the guest helper is looked for.
func (a *app) helperOptions() helperbin.Options {
	return helperbin.Options{Env: a.getenv, Executable: a.executable, Logger: a.logger()}
}

// helperFor finds the guest helper for another machine.
func (a *app) helperFor(arch string) (helperbin.Helper, error) {
	return helperbin.For("linux", arch, a.helperOptions())
}

// openBackend opens a backend by name, which is closed at the end of the program. engine is the
// address of its engine; empty means the one that the environment names. It starts nothing.
func (a *app) openBackend(name, engine string, log *slog.Logger) (sandbox.Backend, error) {
	b, err := a.newBackend(name, engine, log)
	if c, ok := b.(io.Closer); ok && err == nil {
		a.keep(c)
	}
	return b, err
}

func (a *app) newBackend(name, engine string, log *slog.Logger) (sandbox.Backend, error) {
	if err := knownBackend(name); err != nil {
		return nil, err
	}
	state := owner.DefaultStateDir(a.getenv)
	if state == "" {
		return nil, noStateDir()
	}
	if name == ssh.Name {
		return ssh.New(ssh.Options{StateDir: state, Helper: a.helperFor, Getenv: a.getenv, Logger: log})
	}
	helper, err := helperbin.Find(a.helperOptions())
	if err != nil {
		return nil, &sandbox.Problem{What: "the guest helper", Rule: err.Error(), Remedy: "build it with: make build, or set BERTH_GUEST to its path", Err: sandbox.ErrUnavailable}
	}
	facts, run := a.facts(), owner.DefaultRuntimeDir(a.getenv)
	switch name {
	case docker.Name:
		return docker.New(docker.Options{Host: engine, HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	case podman.Name:
		return podman.New(podman.Options{Host: engine, HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	case local.Name:
		return local.New(local.Options{HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	default:
		return bubblewrap.New(bubblewrap.Options{HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	}
}

// defaultConfig is the built-in configuration of a backend.
func defaultConfig(backend string) sandbox.Config {
	switch backend {
	case docker.Name:
		return docker.DefaultConfig()
	case podman.Name:
		return podman.DefaultConfig()
	case local.Name:
		return local.DefaultConfig()
	case ssh.Name:
		return ssh.DefaultConfig()
	}
	return sandbox.DefaultConfig()
}

// backendNames are the words of --backend.
func backendNames() []string {
	return []string{bubblewrap.Name, docker.Name, podman.Name, ssh.Name, local.Name}
}

// knownBackend refuses a word that is no backend.
func knownBackend(name string) error {
	if slices.Contains(backendNames(), name) {
		return nil
	}
	return &sandbox.Problem{
		What: fmt.Sprintf("backend %q", name), Rule: "there is none of that name",
		Remedy: "choose one of: " + strings.Join(backendNames(), ", "), Err: sandbox.ErrUnknownBackend,
	}
}

// engineOf is the address of the engine that a backend uses in this environment; empty where it has
// none, or where it cannot be found, which is told when it is needed.
func (a *app) engineOf(backend string) string {
	switch backend {
	case docker.Name:
		address, _ := docker.Address(a.getenv)
		return address
	case podman.Name:
		return podman.Address(a.getenv)
	}
	return ""
}
