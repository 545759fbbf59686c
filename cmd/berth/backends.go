package main

import (
	"log/slog"

	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/bubblewrap"
	"github.com/workberth/workberth/sandbox/local"
)

// helperOptions tell where the guest helper is looked for.
func (a *app) helperOptions() helperbin.Options {
	return helperbin.Options{Env: a.getenv, Executable: a.executable, Logger: a.logger()}
}

// openBackend opens a backend by name. It starts nothing.
func (a *app) openBackend(name string, log *slog.Logger) (sandbox.Backend, error) {
	if err := knownBackend(name); err != nil {
		return nil, err
	}
	state := owner.DefaultStateDir(a.getenv)
	if state == "" {
		return nil, noStateDir()
	}
	helper, err := helperbin.Find(a.helperOptions())
	if err != nil {
		return nil, &sandbox.Problem{What: "the guest helper", Rule: err.Error(), Remedy: "build it with: make build, or set BERTH_GUEST to its path", Err: sandbox.ErrUnavailable}
	}
	facts, run := a.facts(), owner.DefaultRuntimeDir(a.getenv)
	switch name {
	case "local":
		return local.New(local.Options{HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	default:
		return bubblewrap.New(bubblewrap.Options{HelperPath: helper.Path, StateDir: state, RuntimeDir: run, Getenv: a.getenv, Facts: &facts, Logger: log})
	}
}

// defaultConfig is the built-in configuration of a backend.
func defaultConfig(backend string) sandbox.Config {
	if backend == "local" {
		return local.DefaultConfig()
	}
	return sandbox.DefaultConfig()
}
