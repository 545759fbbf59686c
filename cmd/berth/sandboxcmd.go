package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/ssh"
)

// newSandbox is "berth sandbox".
func newSandbox(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "List, describe, explain, stop, remake and remove sandboxes",
		Args:  noCommand,
		RunE:  help,
	}
	cmd.AddCommand(newSandboxLs(a), newSandboxInspect(a), newSandboxExplain(a), newSandboxStop(a), newSandboxRm(a), newSandboxRecreate(a), newSandboxPrune(a))
	return cmd
}

// eachBackend runs fn on every backend. A failure is reported and does not keep
// the others from being asked; it is returned at the end.
func (a *app) eachBackend(fn func(sandbox.Backend) error) error {
	return a.eachPath(backendNames(), func(name string) error {
		b, err := a.openBackend(name, "", a.logger())
		if err != nil {
			return err
		}
		return fn(b)
	})
}

func newSandboxLs(a *app) *cobra.Command {
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the sandboxes of this user",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []sandbox.Info
			err := a.eachBackend(func(b sandbox.Backend) error {
				list, err := b.List(cmd.Context())
				all = append(all, list...)
				return err
			})
			slices.SortFunc(all, func(x, y sandbox.Info) int { return strings.Compare(string(x.ID), string(y.ID)) })
			return errors.Join(a.printSandboxes(all, jsonOut), err)
		},
	}
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per sandbox")
	return cmd
}

func (a *app) printSandboxes(all []sandbox.Info, jsonOut bool) error {
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		if jsonOut {
			i.Config = i.Config.Redacted()
			if err := writeJSON(a.stdout, i); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{
			string(i.ID), string(i.State), scopeWord(i), string(i.Config.Access), i.LastUsed.Local().Format(time.DateTime), ssh.Written(i.Workspace),
		})
	}
	if jsonOut {
		return nil
	}
	return table(a.stdout, []string{"ID", "STATE", "SCOPE", "ACCESS", "LAST USED", "WORKSPACE"}, rows)
}

// scopeWord is the scope with its key.
func scopeWord(i sandbox.Info) string {
	switch i.Scope {
	case sandbox.ScopeSession:
		return "session " + i.Session
	case sandbox.ScopeAgent:
		return "agent " + i.Agent
	}
	return string(i.Scope)
}

func newSandboxInspect(a *app) *cobra.Command {
	t := &target{}
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "inspect [ID...]",
		Short: "Describe sandboxes: mounts, limits and rules in force, processes",
		Long:  "Describe sandboxes by their ids, or the one that the target flags name.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := a.idsOr(t, args)
			if err != nil {
				return err
			}
			return a.eachPath(ids, func(id string) error {
				info, err := a.find(cmd.Context(), sandbox.ID(id))
				if err != nil {
					return err
				}
				info.Config = info.Config.Redacted()
				if jsonOut {
					return writeJSON(a.stdout, info)
				}
				return a.printInfo(info)
			})
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per sandbox")
	return cmd
}

// idsOr are the ids given, or the identity of the target.
func (a *app) idsOr(t *target, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	_, res, err := a.resolve(t)
	if err != nil {
		return nil, err
	}
	return []string{string(res.ID)}, nil
}

// backendOf opens the backend an id belongs to.
func (a *app) backendOf(id sandbox.ID) (sandbox.Backend, error) {
	if !id.Valid() {
		return nil, &sandbox.Problem{What: fmt.Sprintf("sandbox id %q", id), Rule: "it has not the form of one", Remedy: "see the ids with: berth sandbox ls", Err: sandbox.ErrRefused}
	}
	if err := knownBackend(id.Backend()); err != nil {
		return nil, err
	}
	engine := ""
	if registry, err := a.registry(); err == nil {
		if rec, err := registry.Get(id); err == nil {
			engine = rec.Info.Config.Engine
		}
	}
	return a.openBackend(id.Backend(), engine, a.logger())
}

// find describes a sandbox: as its owner knows it where it runs, and from the
// registry otherwise.
func (a *app) find(ctx context.Context, id sandbox.ID) (sandbox.Info, error) {
	b, err := a.backendOf(id)
	if err != nil {
		return sandbox.Info{}, err
	}
	if h, err := owner.Dial(ctx, id, a.ownerOptions()); err == nil {
		defer h.Close()
		return h.Info(ctx)
	}
	list, err := b.List(ctx)
	if err != nil {
		return sandbox.Info{}, err
	}
	for _, i := range list {
		if i.ID == id {
			return i, nil
		}
	}
	return sandbox.Info{}, &sandbox.Problem{What: "sandbox " + string(id), Rule: "there is none of that id", Remedy: "see them with: berth sandbox ls", Err: sandbox.ErrNotFound}
}

func (a *app) printInfo(i sandbox.Info) error {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "%-12s %s\n", name, printable(value))
		}
	}
	line("id", string(i.ID))
	line("state", string(i.State))
	line("detail", i.Detail)
	line("scope", scopeWord(i))
	line("workspace", ssh.Written(i.Workspace)+" (access "+string(i.Config.Access)+")")
	line("workdir", i.Workdir)
	line("network", i.Config.Network)
	line("seccomp", i.Config.SeccompProfile)
	line("created", i.Created.Local().Format(time.DateTime))
	line("last used", i.LastUsed.Local().Format(time.DateTime))
	if i.Owner.PID != 0 {
		line("owner", i.Owner.String())
	}
	for _, k := range sortedKeys(i.Runtime) {
		line(k, i.Runtime[k])
	}
	rows := make([][]string, 0, len(i.Mounts))
	for _, m := range i.Mounts {
		access := "rw"
		if m.ReadOnly {
			access = "ro"
		}
		rows = append(rows, []string{m.Path, string(m.Kind), access, m.HostPath})
	}
	return table(a.stdout, []string{"MOUNT", "KIND", "ACCESS", "ON THE HOST"}, rows)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func newSandboxStop(a *app) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "stop [ID...]",
		Short: "End all processes of sandboxes; their files stay",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := a.idsOr(t, args)
			if err != nil {
				return err
			}
			return a.eachPath(ids, func(id string) error { return a.stop(cmd.Context(), sandbox.ID(id)) })
		},
	}
	t.register(cmd.Flags())
	return cmd
}

// stop asks the owner to end where there is one, and the backend in any case.
func (a *app) stop(ctx context.Context, id sandbox.ID) error {
	b, err := a.backendOf(id)
	if err != nil {
		return err
	}
	if h, err := owner.Dial(ctx, id, a.ownerOptions()); err == nil {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			a.logger().Warn("the owner process did not end when asked; ending its sandbox", "sandbox", id, "error", err)
		}
		_ = h.Close() // the connection has served its purpose
	}
	return b.Stop(ctx, id)
}

func newSandboxRm(a *app) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "rm [ID...]",
		Short: "Stop sandboxes and delete what belongs to them alone; workspaces stay",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := a.idsOr(t, args)
			if err != nil {
				return err
			}
			return a.eachPath(ids, func(id string) error { return a.remove(cmd.Context(), sandbox.ID(id)) })
		},
	}
	t.register(cmd.Flags())
	return cmd
}

// remove stops a sandbox and deletes what belongs to it alone.
func (a *app) remove(ctx context.Context, id sandbox.ID) error {
	if err := a.stop(ctx, id); err != nil {
		return err
	}
	b, err := a.backendOf(id)
	if err != nil {
		return err
	}
	return b.Remove(ctx, id)
}

func newSandboxRecreate(a *app) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "recreate",
		Short: "Remove the sandbox that the target flags name, and make it anew",
		Long: `Remove the sandbox that the target flags name, and make it anew: with the image as it is now, with
nothing that was written outside the workspace, and with its setup command run again. The workspace
stays; one of another machine that has a seed is filled from it anew, and the old one is kept beside it,
with ".before-" and the time in its name. Prints the id.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			backend, res, err := a.resolve(t)
			if err != nil {
				return err
			}
			if err := a.remove(cmd.Context(), res.ID); err != nil {
				return err
			}
			if err := a.reseed(cmd.Context(), backend, res.Spec); err != nil {
				return err
			}
			h, err := a.open(cmd.Context(), t)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, res.ID)
			return errors.Join(err, h.Close())
		},
	}
	t.register(cmd.Flags())
	return cmd
}

// reseed moves a workspace with a seed aside, so that it is filled anew.
func (a *app) reseed(ctx context.Context, backend string, spec sandbox.Spec) error {
	b, err := a.openBackend(backend, spec.Config.Engine, a.logger())
	if err != nil {
		return err
	}
	r, ok := b.(interface {
		Reseed(ctx context.Context, spec sandbox.Spec) (kept string, err error)
	})
	if !ok {
		return nil
	}
	kept, err := r.Reseed(ctx, spec)
	if err == nil && kept != "" {
		fmt.Fprintf(a.stderr, "berth: the old workspace is kept at %s\n", printable(kept))
	}
	return err
}

func newSandboxPrune(a *app) *cobra.Command {
	var dryRun, jsonOut bool
	var idle, age time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove sandboxes that are unused for too long or too old",
		Long: `Remove sandboxes that are unused for longer than their prune.idleHours or older
than their prune.maxAgeDays. --idle and --max-age apply to those that have no rule
of their own. A running sandbox is never removed. What dead owners left is ended
first.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if idle < 0 || age < 0 {
				return &usageError{errors.New("--idle and --max-age must not be negative")}
			}
			reg, err := a.registry()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if !dryRun {
				if _, err := reg.Reconcile(ctx, "", nil); err != nil {
					return err
				}
			}
			pruned, err := reg.Prune(ctx, sandbox.PruneOptions{
				DryRun:  dryRun,
				Default: sandbox.Prune{IdleHours: idle.Hours(), MaxAgeDays: age.Hours() / 24},
				Remove:  a.discard,
			})
			if err != nil {
				return err
			}
			return a.printPruned(pruned, dryRun, jsonOut)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&dryRun, "dry-run", false, "only tell what would be removed")
	f.DurationVar(&idle, "idle", 0, "remove what was not used for so long, such as 48h")
	f.DurationVar(&age, "max-age", 0, "remove what is older than this")
	f.BoolVar(&jsonOut, "json", false, "one JSON object per sandbox")
	return cmd
}

// discard removes what a sandbox has outside its entry: its container.
func (a *app) discard(ctx context.Context, claim *sandbox.Claim) error {
	b, err := a.backendOf(claim.ID())
	if err != nil {
		return err
	}
	if d, ok := b.(interface {
		Discard(ctx context.Context, claim *sandbox.Claim) error
	}); ok {
		return d.Discard(ctx, claim)
	}
	return nil
}

func (a *app) printPruned(pruned []sandbox.Pruned, dryRun, jsonOut bool) error {
	word := "removed"
	if dryRun {
		word = "would remove"
	}
	failed := 0
	for _, p := range pruned {
		text := ""
		if p.Err != nil {
			failed++
			text = p.Err.Error()
		}
		var err error
		if jsonOut {
			err = writeJSON(a.stdout, map[string]any{"id": p.Info.ID, "reason": p.Reason, "removed": !dryRun && p.Err == nil, "error": text})
		} else if p.Err != nil {
			_, err = fmt.Fprintf(a.stdout, "could not remove %s: %s\n", p.Info.ID, printable(firstLine(text)))
		} else {
			_, err = fmt.Fprintf(a.stdout, "%s %s: %s\n", word, p.Info.ID, printable(p.Reason))
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return withHint(exitFailure, fmt.Errorf("%d sandboxes could not be removed", failed), "see: berth sandbox ls")
	}
	return nil
}

// registry opens the registry of sandboxes.
func (a *app) registry() (*sandbox.Registry, error) {
	dir := owner.DefaultStateDir(a.getenv)
	if dir == "" {
		return nil, noStateDir()
	}
	return sandbox.OpenRegistry(dir, sandbox.RegistryOptions{Log: a.logger()})
}

// noStateDir: there is nowhere to keep the registry.
func noStateDir() error {
	return &sandbox.Problem{
		What: "no place for berth's own state", Rule: "neither BERTH_STATE_DIR nor XDG_STATE_HOME nor HOME is set",
		Remedy: "set HOME, or BERTH_STATE_DIR to a private directory", Err: sandbox.ErrUnavailable,
	}
}
