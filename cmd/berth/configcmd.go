package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/sandbox"
)

// newConfig is "berth config".
func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check the configuration",
		Long: `Show and check the configuration.

It is YAML in $XDG_CONFIG_HOME/berth/config.yaml or --config, never in a workspace:

  backend: bubblewrap
  defaults:               # for every sandbox
    access: rw
    limits: {pids: 256, memory: 2GiB}
  backends:               # for one backend
    bubblewrap:
      binds: [{source: /srv/models, target: /models}]
  agents:                 # for --agent NAME
    reviewer:
      workspace: /srv/project
      access: ro
      setupCommand: git config --global user.name reviewer`,
		Args: noCommand,
		RunE: help,
	}
	cmd.AddCommand(newConfigShow(a), newConfigCheck(a))
	return cmd
}

func newConfigShow(a *app) *cobra.Command {
	t := &target{}
	var jsonOut, values bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "The effective configuration and where each value comes from",
		Long:  "The effective configuration and where each value comes from. Values of environment variables are shown only with --values.",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			eff, err := t.effective(a)
			if err != nil {
				return err
			}
			settings := eff.Settings()
			rows := make([][]string, 0, len(settings))
			for _, s := range settings {
				if strings.HasPrefix(s.Name, "env.") && !values {
					s.Value = "(set)"
				}
				if jsonOut {
					if err := writeJSON(a.stdout, s); err != nil {
						return err
					}
					continue
				}
				rows = append(rows, []string{s.Name, valueText(s.Value), s.Source})
			}
			if jsonOut {
				return nil
			}
			return table(a.stdout, []string{"SETTING", "VALUE", "SOURCE"}, rows)
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per setting")
	cmd.Flags().BoolVar(&values, "values", false, "show the values of environment variables")
	return cmd
}

// valueText is a value in a table.
func valueText(v any) string {
	switch x := v.(type) {
	case []sandbox.Tmpfs:
		words := make([]string, len(x))
		for i, t := range x {
			words[i] = fmt.Sprintf("%s (%d MiB)", t.Path, t.SizeBytes>>20)
		}
		return strings.Join(words, ", ")
	case []sandbox.Bind:
		words := make([]string, len(x))
		for i, b := range x {
			mode := "rw"
			if b.ReadOnly {
				mode = "ro"
			}
			words[i] = fmt.Sprintf("%s at %s (%s)", b.Source, b.Target, mode)
		}
		return strings.Join(words, ", ")
	case []string:
		return strings.Join(x, ", ")
	case string:
		return x
	}
	return fmt.Sprint(v)
}

// checkJSON is one fault that config check found.
type checkJSON struct {
	OK    bool   `json:"ok"`
	Agent string `json:"agent,omitempty"`
	// Workspace is the name of a bound one.
	Workspace string `json:"workspace,omitempty"`
	Field     string `json:"field,omitempty"`
	Problem   string `json:"problem,omitempty"`
	Remedy    string `json:"remedy,omitempty"`
	Source    string `json:"source,omitempty"`
}

func newConfigCheck(a *app) *cobra.Command {
	t := &target{}
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, for every agent and bound workspace in it, without starting anything",
		Args:  exactly(0),
		RunE: func(*cobra.Command, []string) error {
			faults, err := a.checkConfig(t)
			if err != nil {
				return err
			}
			for _, f := range faults {
				if jsonOut {
					err = writeJSON(a.stdout, f)
				} else {
					_, err = fmt.Fprintln(a.stdout, printable(f.text()))
				}
				if err != nil {
					return err
				}
			}
			if len(faults) > 0 {
				return withHint(exitRefused, fmt.Errorf("%d settings would be refused", len(faults)), "correct them, or permit a dangerous one by name in allowDangerous")
			}
			if jsonOut {
				return writeJSON(a.stdout, checkJSON{OK: true})
			}
			_, err = fmt.Fprintln(a.stdout, "the configuration is good")
			return err
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per fault")
	return cmd
}

// text is the fault in two clauses.
func (f checkJSON) text() string {
	s := f.Problem
	if f.Agent != "" {
		s = "agent " + f.Agent + ": " + s
	}
	if f.Workspace != "" {
		s = "workspace " + f.Workspace + ": " + s
	}
	if f.Source != "" && f.Source != config.SourceDefault {
		s = f.Source + ": " + s
	}
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// checkConfig validates what the target asks for, every configured agent and every bound workspace.
func (a *app) checkConfig(t *target) ([]checkJSON, error) {
	path, explicit := t.config, t.config != ""
	if !explicit {
		path = config.DefaultPath(a.getenv)
	}
	file, err := config.Load(path, explicit, "")
	if err != nil {
		return nil, err
	}
	agents := append([]string{t.agent}, file.Agents()...)
	slices.Sort(agents)
	var faults []checkJSON
	for _, agent := range slices.Compact(agents) {
		of := *t
		of.agent = agent
		eff, err := of.effective(a)
		if err != nil {
			return nil, err
		}
		found, err := a.checkEffective(eff, checkJSON{Agent: agent})
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	for _, name := range file.Workspaces() {
		eff, err := file.Merge(config.Request{Binding: name}, defaultConfig)
		if err != nil {
			return nil, err
		}
		found, err := a.checkEffective(eff, checkJSON{Workspace: name})
		if err != nil {
			return nil, err
		}
		faults = append(faults, found...)
	}
	return faults, nil
}

// checkEffective tells what of one effective configuration would be refused. of says whose it is.
func (a *app) checkEffective(eff *config.Effective, of checkJSON) (faults []checkJSON, err error) {
	if err := knownBackend(eff.Backend); err != nil {
		return []checkJSON{of.fault(err, eff)}, nil
	}
	s, err := spec(eff)
	if err != nil {
		return nil, err
	}
	_, err = sandbox.Resolve(eff.Backend, s, a.factsFor(eff.Backend), nil)
	for _, err := range split(err) {
		faults = append(faults, of.fault(err, eff))
	}
	return faults, nil
}

// split takes joined errors apart.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}

// fault describes one refusal and where its setting comes from.
func (f checkJSON) fault(err error, eff *config.Effective) checkJSON {
	f.Problem = err.Error()
	var p *sandbox.Problem
	if errors.As(err, &p) {
		f.Field, f.Remedy = p.Field, p.Remedy
		f.Source = eff.Source(p.Field)
	}
	return f
}
