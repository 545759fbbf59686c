package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/remoteworkspace"
	"github.com/workberth/workberth/sandbox"
)

// workspaceFlags are what every "berth workspace" command shares.
type workspaceFlags struct{ name, config string }

// newWorkspace is "berth workspace".
func newWorkspace(a *app) *cobra.Command {
	w := &workspaceFlags{}
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Read and save an agent's documents where its workspace is",
		Long: `Read and save the documents of an agent's workspace (AGENTS.md, IDENTITY.md, MEMORY.md, ...)
on the machine, in the container or in the sandbox that has it. Workspaces are bound by
name in the configuration:

  workspaces:
    helper:
      backend: docker              # any backend, with its settings
      workspace: /srv/helper
      documents: [AGENTS.md, IDENTITY.md, notes/plan.md]   # left out: the usual ones
      patterns: ["docs/*.md"]      # further files that a session starts with

The files come from there or not at all: when it cannot be reached, the command fails.`,
		Args: noCommand,
		RunE: help,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&w.name, "workspace", "", "name of the workspace in the configuration")
	f.StringVar(&w.config, "config", "", "configuration file (default $XDG_CONFIG_HOME/berth/config.yaml)")
	cmd.AddCommand(newWorkspaceLs(a, w), newWorkspaceGet(a, w), newWorkspaceSet(a, w), newWorkspaceIdentity(a, w), newWorkspaceBootstrap(a, w))
	return cmd
}

// file reads the configuration.
func (w *workspaceFlags) file(a *app, inside string) (*config.File, error) {
	path, explicit := w.config, w.config != ""
	if !explicit {
		path = config.DefaultPath(a.getenv)
	}
	return config.Load(path, explicit, inside)
}

// boundWorkspace is a configured workspace, ready for calls.
type boundWorkspace struct {
	config.Workspace
	dir  string
	all  *remoteworkspace.Workspaces
	docs *remoteworkspace.DocumentService
}

// bind makes the calls of the workspace that the flags name. It connects to nothing: each
// call does.
func (w *workspaceFlags) bind(a *app) (*boundWorkspace, error) {
	if w.name == "" {
		return nil, &usageError{errors.New("--workspace is missing: the name of a workspace in the configuration; see them with: berth workspace ls")}
	}
	file, err := w.file(a, "")
	if err != nil {
		return nil, err
	}
	settings, err := file.Workspace(w.name)
	if err != nil {
		return nil, err
	}
	eff, err := file.Merge(config.Request{Binding: w.name}, defaultConfig)
	if err != nil {
		return nil, err
	}
	if eff.Config.Access == sandbox.AccessNone {
		return nil, &sandbox.Problem{
			Field: "workspaces." + w.name + ".access", What: "access none", Rule: "the sandbox would have a scratch directory in place of the workspace",
			Remedy: "set access: ro, or rw to save documents", Err: sandbox.ErrRefused,
		}
	}
	if eff.Backend != config.RemoteBackend {
		// A configuration inside the workspace would let its content decide how it is confined.
		if _, err = w.file(a, eff.Workspace); err != nil {
			return nil, err
		}
	}
	registry := remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{
		// The directory may be one of another machine, whose links are not ours to follow.
		Canonical: func(dir string) (string, error) { return dir, nil },
		Logger:    a.logger(),
	})
	b := &boundWorkspace{Workspace: settings, dir: "/" + w.name}
	if err := registry.Declare(b.dir); err != nil {
		return nil, err
	}
	if _, err := registry.Register(b.dir, remoteworkspace.Access{Bridge: a.bridgeFactory(eff)}); err != nil {
		return nil, err
	}
	if b.all, err = remoteworkspace.New(remoteworkspace.Options{Registry: registry, Logger: a.logger()}); err != nil {
		return nil, err
	}
	b.docs, err = b.all.Documents(remoteworkspace.DocumentOptions{Allow: settings.Documents, MaxBytes: settings.MaxDocument})
	return b, err
}

// withWorkspace runs fn on the workspace that the flags name.
func (w *workspaceFlags) withWorkspace(ctx context.Context, a *app, fn func(context.Context, *boundWorkspace) error) error {
	b, err := w.bind(a)
	if err != nil {
		return err
	}
	return workspaceError(fn(ctx, b))
}
