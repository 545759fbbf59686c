package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/sandbox"
)

// verdict is one statement of explain.
type verdict struct {
	Subject string `json:"subject"`
	Allowed bool   `json:"allowed"`
	Rule    string `json:"rule"`
	Remedy  string `json:"remedy,omitempty"`
}

// explanation is all that explain has to say.
type explanation struct {
	Sandbox  sandbox.ID `json:"sandbox,omitempty"`
	Verdicts []verdict  `json:"verdicts"`
}

func (e *explanation) allow(subject, rule string) {
	e.Verdicts = append(e.Verdicts, verdict{Subject: subject, Allowed: true, Rule: rule})
}

func (e *explanation) refuse(subject, rule, remedy string) {
	e.Verdicts = append(e.Verdicts, verdict{Subject: subject, Rule: rule, Remedy: remedy})
}

func newSandboxExplain(a *app) *cobra.Command {
	t := &target{}
	var jsonOut bool
	var workdir string
	cmd := &cobra.Command{
		Use:   "explain PATH... | -- COMMAND [ARG...]",
		Short: "Why would this be refused? The rule, the mount and the remedy, without doing it",
		Long: `Why would this be refused? For file operations on a path, or for a command after
"--": the rule that decides, the mount it falls in, and what to do. Nothing is
changed and the command is not run. The sandbox is started if it is not running, as
its own kernel gives the answer; when the configuration itself would be refused,
that is the answer. Exit code 1 when something would be refused.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e := &explanation{}
			if err := a.explain(cmd.Context(), t, e, args, workdir, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return a.printExplanation(e, jsonOut)
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "as one JSON object")
	cmd.Flags().StringVarP(&workdir, "workdir", "w", "", "directory the command would run in")
	return cmd
}

// explain collects the verdicts on the configuration, then on paths or command.
func (a *app) explain(ctx context.Context, t *target, e *explanation, args []string, workdir string, dash int) error {
	eff, err := t.effective(a)
	if err != nil {
		return err
	}
	backend, res, err := a.resolve(t)
	if err != nil {
		for _, err := range split(err) {
			e.refuseSetting(err, eff)
		}
		return nil
	}
	e.Sandbox = res.ID
	for _, f := range res.Findings {
		e.allow(f.What, "dangerous ("+f.Rule+"), permitted by allowDangerous from "+eff.Source("allowDangerous"))
	}
	s, err := a.connect(ctx, t, backend, res)
	if err != nil {
		for _, err := range split(err) {
			e.refuseSetting(err, eff)
		}
		return nil
	}
	defer s.Close()
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	if text := info.Runtime["copy"]; text != "" {
		if left := info.Runtime["leftOut"]; left != "" {
			text += "; left out: " + left
		}
		e.allow("the workspace", text)
	}
	if dash == 0 {
		return e.command(ctx, s.Bridge(), info, eff, args, workdir)
	}
	for _, p := range args {
		if err := e.path(ctx, s.Bridge(), info.Mounts, p); err != nil {
			return err
		}
	}
	return nil
}

// refuseSetting turns a refusal of the configuration into a verdict.
func (e *explanation) refuseSetting(err error, eff *config.Effective) {
	_, remedy := classify(err)
	var p *sandbox.Problem
	rule := firstLine(err.Error())
	if errors.As(err, &p) && p.Field != "" {
		rule += " (from " + eff.Source(p.Field) + ")"
	}
	e.refuse("the sandbox", rule, remedy)
}

// path explains reading and writing at p.
func (e *explanation) path(ctx context.Context, b fsbridge.Bridge, mounts fsbridge.MountTable, p string) error {
	subject := func(op string) string { return op + " " + fsbridge.DisplayPath(p) }
	info, err := b.Stat(ctx, p)
	if pathErr, ok := errors.AsType[*fsbridge.PathError](err); ok && !errors.Is(err, fs.ErrNotExist) {
		e.refuse(subject("read"), pathErr.Err.Error(), pathRemedy(pathErr))
		e.refuse(subject("write"), pathErr.Err.Error(), pathRemedy(pathErr))
		return nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	mount, err := locate(ctx, b, mounts, p)
	if err != nil {
		return err
	}
	where := describeMount(mount)
	switch {
	case missing:
		e.refuse(subject("read"), "it does not exist, "+where, "see what is there with: berth fs ls "+fsbridge.DisplayPath(path.Dir(p)))
	case info.IsRegular(), info.IsDir():
		e.allow(subject("read"), fmt.Sprintf("%s, owner %d:%d, %s", longMode(info), info.UID, info.GID, where))
	default:
		e.refuse(subject("read"), fmt.Sprintf("not a regular file: it is a %s, %s", info.Type, where), "only regular files have content")
	}
	switch {
	case mount.ReadOnly:
		e.refuse(subject("write"), "read-only, "+where, writeRemedy(mount))
	case !missing && !info.IsRegular():
		e.refuse(subject("write"), fmt.Sprintf("it is a %s, %s", info.Type, where), "remove it first, or write to another path")
	default:
		e.allow(subject("write"), "atomic replacement, "+where)
	}
	return nil
}

// locate is the mount a path really lies in: that of the file where it exists,
// and that of the nearest existing parent otherwise.
func locate(ctx context.Context, b fsbridge.Bridge, table fsbridge.MountTable, p string) (fsbridge.Mount, error) {
	ws, _ := table.Workspace()
	abs := p
	if !path.IsAbs(p) {
		abs = ws.Path + "/" + p
	}
	m, _, _ := table.Find(abs)
	src, err := fsbridge.ReadFileWithSource(ctx, b, p)
	if err == nil {
		m, _, _ = table.Find(src.ResolvedPath)
	}
	if _, ok := errors.AsType[*fsbridge.PathError](err); err != nil && !ok {
		return m, err
	}
	return m, nil
}

// describeMount names a mount for a person.
func describeMount(m fsbridge.Mount) string {
	s := "in the " + string(m.Kind) + " mount " + m.Path
	if m.HostPath != "" {
		s += " (" + m.HostPath + " on the host)"
	}
	return s
}

// writeRemedy is how a read-only mount could become writable.
func writeRemedy(m fsbridge.Mount) string {
	switch m.Kind {
	case fsbridge.MountWorkspace:
		return "give the sandbox --access rw"
	case fsbridge.MountBind:
		return "set readOnly: false on this bind in the configuration"
	}
	return "write below the workspace or /tmp; system files are never writable through the bridge"
}

// command explains whether argv could be started.
func (e *explanation) command(ctx context.Context, b fsbridge.Bridge, info sandbox.Info, eff *config.Effective, argv []string, workdir string) error {
	dir := workdir
	if dir == "" {
		dir = info.Workdir
	}
	if st, err := b.Stat(ctx, dir); err != nil {
		if pe, ok := errors.AsType[*fsbridge.PathError](err); ok {
			e.refuse("working directory "+fsbridge.DisplayPath(dir), pe.Err.Error(), "give --workdir a directory that exists in the sandbox")
		} else {
			return err
		}
	} else if !st.IsDir() {
		e.refuse("working directory "+fsbridge.DisplayPath(dir), fmt.Sprintf("it is a %s", st.Type), "give --workdir a directory")
	} else {
		e.allow("working directory "+fsbridge.DisplayPath(dir), "a directory in the sandbox")
	}
	if err := e.program(ctx, b, info, eff, argv[0], dir); err != nil {
		return err
	}
	c := info.Config
	e.allow("network", c.Network+" (from "+eff.Source("network")+")")
	if c.Network == "none" {
		e.Verdicts[len(e.Verdicts)-1] = verdict{
			Subject: "network", Rule: "none: no address but the sandbox's own loopback can be reached (from " + eff.Source("network") + ")",
			Remedy:  "--network host with --allow-dangerous network, if the command must reach others",
			Allowed: true,
		}
	}
	for _, k := range sortedKeys(info.Runtime) {
		if strings.HasPrefix(k, "limit") {
			e.allow(k, info.Runtime[k])
		}
	}
	return nil
}

// program explains how the first word is found.
func (e *explanation) program(ctx context.Context, b fsbridge.Bridge, info sandbox.Info, eff *config.Effective, name, dir string) error {
	subject := "command " + fsbridge.DisplayPath(name)
	var tried []string
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = nil
		for d := range strings.SplitSeq(searchPath(info, eff), ":") {
			if d != "" {
				candidates = append(candidates, path.Join(d, name))
			}
		}
	} else if !path.IsAbs(name) {
		candidates = []string{path.Join(dir, name)}
	}
	for _, c := range candidates {
		st, err := b.Stat(ctx, c)
		switch {
		case err != nil:
			if _, ok := errors.AsType[*fsbridge.PathError](err); !ok {
				return err
			}
			tried = append(tried, c)
		case !st.IsRegular():
			tried = append(tried, c)
			if len(candidates) == 1 {
				e.refuse(subject, fmt.Sprintf("%s is a %s (exit code 126)", c, st.Type), "name a program")
				return nil
			}
		case st.Mode&0o111 == 0:
			e.refuse(subject, c+" has no execute permission (exit code 126)", "berth fs chmod 0755 "+fsbridge.DisplayPath(c))
			return nil
		default:
			e.allow(subject, "found as "+c)
			return nil
		}
	}
	e.refuse(subject, "not found; looked at "+strings.Join(tried, ", ")+" (exit code 127)", "install it in the workspace, bind it, or set PATH with -e or env in the configuration")
	return nil
}

// searchPath is the PATH of commands in the sandbox.
func searchPath(info sandbox.Info, eff *config.Effective) string {
	if p, ok := eff.Config.Env["PATH"]; ok {
		return p
	}
	if p := info.Runtime["path"]; p != "" {
		return p
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func (a *app) printExplanation(e *explanation, jsonOut bool) error {
	refused := slices.ContainsFunc(e.Verdicts, func(v verdict) bool { return !v.Allowed })
	if jsonOut {
		if err := writeJSON(a.stdout, e); err != nil {
			return err
		}
	} else {
		for _, v := range e.Verdicts {
			word := "allowed"
			if !v.Allowed {
				word = "REFUSED"
			}
			fmt.Fprintf(a.stdout, "%s  %s: %s\n", word, printable(v.Subject), printable(v.Rule))
			if v.Remedy != "" {
				fmt.Fprintf(a.stdout, "         -> %s\n", printable(v.Remedy))
			}
		}
	}
	if refused {
		return commandExit(exitFailure)
	}
	return nil
}
