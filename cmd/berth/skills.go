package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// skillsFlags are what every "berth skills" command shares.
type skillsFlags struct {
	target
	jsonOut bool
}

// newSkills is "berth skills".
func newSkills(a *app) *cobra.Command {
	s := &skillsFlags{}
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "Find agent skills, and say of each what became of it",
		Long: `Find agent skills (folders with a SKILL.md), and say of each what became of it: loaded,
shadowed, disabled, missing something, or rejected with line, rule and fix.

Skills of the workspace (skills/, .agents/skills/, .claude/skills/) win over installed ones
(~/.agents/skills, ~/.claude/skills), those over bundled ones. Without target flags, the
workspace is a directory of this machine: the current one, or --workspace. With them (--backend,
--ssh, --agent, ...) its skills are read in the sandbox, and their requirements are judged by
what is there.`,
		Args: noCommand,
		RunE: help,
	}
	f := cmd.PersistentFlags()
	s.register(f)
	f.BoolVar(&s.jsonOut, "json", false, "one JSON object per skill")
	cmd.AddCommand(newSkillsLs(a, s), newSkillsShow(a, s), newSkillsCheck(a, s), newSkillsSync(a, s))
	return cmd
}

func newSkillsLs(a *app, s *skillsFlags) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List every SKILL.md found, with its verdict",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return a.watchSkills(cmd.Context(), s)
			}
			l, err := a.listSkills(cmd.Context(), s, skills.Options{NoHashes: true})
			if err != nil {
				return err
			}
			return a.printSkills(s, l)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "list again after every change, until interrupted")
	return cmd
}

// printSkills prints a listing, for people or as JSON.
func (a *app) printSkills(s *skillsFlags, l skills.Listing) error {
	if s.jsonOut {
		return a.printSkillsJSON(l)
	}
	rows := make([][]string, 0, len(l.Verdicts))
	faults := 0
	for _, v := range l.Verdicts {
		faults += len(v.Faults)
		name := v.Name
		if name == "" {
			name = "-"
		}
		rows = append(rows, []string{name, string(v.State), string(v.Kind), v.File, why(v)})
	}
	if err := table(a.stdout, []string{"NAME", "STATE", "KIND", "FILE", "WHY"}, rows); err != nil {
		return err
	}
	if n := faults + len(l.Notices); n > 0 {
		fmt.Fprintf(a.stderr, "berth: %d faults; see them with: berth skills check\n", n)
	}
	return nil
}

// why is the first reason of a verdict.
func why(v skills.Verdict) string {
	switch v.State {
	case skills.StateShadowed:
		return "by " + fsbridge.DisplayPath(v.By)
	case skills.StateDisabled:
		return v.By
	case skills.StateMissing:
		return strings.Join(v.Missing, "; ")
	case skills.StateRejected:
		for _, f := range v.Faults {
			if f.Severity == skills.SeverityError {
				return atLine(f) + f.Text
			}
		}
	case skills.StateLoaded:
		for _, n := range v.Notes {
			if !strings.HasPrefix(n, "shadows ") {
				return n
			}
		}
	}
	return ""
}

func atLine(f skills.Fault) string {
	if f.Line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", f.Line)
}

// printSkillsJSON prints verdicts and then notices, one object each.
func (a *app) printSkillsJSON(l skills.Listing) error {
	for _, v := range l.Verdicts {
		if err := writeJSON(a.stdout, displayed(v)); err != nil {
			return err
		}
	}
	for _, n := range l.Notices {
		n.Path = fsbridge.DisplayPath(n.Path)
		if err := writeJSON(a.stdout, map[string]any{"notice": n}); err != nil {
			return err
		}
	}
	return nil
}

// displayed is a verdict with its paths in the reversible form.
func displayed(v skills.Verdict) skills.Verdict {
	for _, p := range []*string{&v.Root, &v.Dir, &v.File, &v.RealFile} {
		*p = fsbridge.DisplayPath(*p)
	}
	v.Resources = append([]skills.Resource{}, v.Resources...)
	for i := range v.Resources {
		v.Resources[i].Path = fsbridge.DisplayPath(v.Resources[i].Path)
	}
	v.Faults = append([]skills.Fault{}, v.Faults...)
	for i := range v.Faults {
		v.Faults[i].Path = fsbridge.DisplayPath(v.Faults[i].Path)
	}
	return v
}

func newSkillsShow(a *app, s *skillsFlags) *cobra.Command {
	var content bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Everything about a skill: fields, requirements, files with hashes, faults",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showSkill(cmd.Context(), s, args[0], content)
		},
	}
	cmd.Flags().BoolVar(&content, "content", false, "print the SKILL.md of the loaded skill instead, byte for byte")
	return cmd
}

func (a *app) showSkill(ctx context.Context, s *skillsFlags, name string, content bool) error {
	ld, err := a.skillLoader(s)
	if err != nil {
		return err
	}
	defer ld.close()
	l, err := ld.list(ctx, skills.Options{NoHashes: content})
	if err != nil {
		return err
	}
	var of []skills.Verdict
	for _, v := range l.Verdicts {
		if v.Name == name || v.Name == "" && path.Base(v.Dir) == name {
			of = append(of, v)
		}
	}
	if len(of) == 0 {
		return withHint(exitFailure, fmt.Errorf("no skill %q was found", name), "see what was found with: berth skills ls")
	}
	if content {
		return a.printSkillContent(ctx, ld, of)
	}
	for i, v := range of {
		switch {
		case s.jsonOut:
			if err := writeJSON(a.stdout, displayed(v)); err != nil {
				return err
			}
		default:
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			a.printSkill(v)
		}
	}
	return nil
}

// printSkillContent writes the file of the loaded skill.
func (a *app) printSkillContent(ctx context.Context, ld *skillLoad, of []skills.Verdict) error {
	for _, v := range of {
		if v.State != skills.StateLoaded {
			continue
		}
		data, err := ld.read(ctx, v)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(data)
		return err
	}
	return withHint(exitFailure, errors.New("the skill is not loaded: "+string(of[0].State)+" "+why(of[0])), "see: berth skills show "+of[0].Name)
}

// printSkill writes a verdict for people.
func (a *app) printSkill(v skills.Verdict) {
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(a.stdout, "%-14s %s\n", label, printable(text))
		}
	}
	line("name", v.Name)
	line("title", v.Title)
	line("state", strings.TrimSpace(string(v.State)+" "+why(v)))
	line("kind", string(v.Kind))
	line("file", v.File)
	if path.Clean(v.RealFile) != path.Clean(v.File) {
		line("lies at", v.RealFile)
	}
	line("description", strings.ReplaceAll(v.Description, "\n", " "))
	line("license", v.License)
	line("compatibility", v.Compatibility)
	line("allowed tools", strings.Join(v.AllowedTools, ", "))
	line("platforms", strings.Join(v.Requires.Platforms, ", "))
	line("binaries", strings.Join(v.Requires.Binaries, ", "))
	line("one binary of", strings.Join(v.Requires.AnyBinary, ", "))
	line("environment", strings.Join(v.Requires.Env, ", "))
	line("other fields", strings.Join(v.Other, ", "))
	line("sha-256", string(v.Digest))
	for _, n := range v.Notes {
		line("note", n)
	}
	for _, r := range v.Resources {
		line("has", fmt.Sprintf("%s  %d bytes  %s", fsbridge.DisplayPath(r.Path), r.Size, r.Digest))
	}
	for _, f := range v.Faults {
		a.printFault(f)
	}
}

// printFault writes a fault as compilers do, and what to do about it.
func (a *app) printFault(f skills.Fault) {
	at := fsbridge.DisplayPath(f.Path)
	if f.Line > 0 {
		at += fmt.Sprintf(":%d", f.Line)
	}
	fmt.Fprintf(a.stdout, "%s: %s: %s (%s)\n", printable(at), f.Severity, printable(firstLine(f.Text)), f.Rule)
	if f.Fix != "" {
		fmt.Fprintf(a.stdout, "  fix: %s\n", printable(firstLine(f.Fix)))
	}
}
