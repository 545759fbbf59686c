package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/helperbin"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/sandbox/ssh"
)

// newDoctor is "berth doctor".
func newDoctor(a *app) *cobra.Command {
	t := &target{}
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What works on this machine, what is missing and how to get it",
		Long:  "What works on this machine, what is missing and how to get it. Exit code 1 when the chosen backend is not usable.",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			eff, err := t.effective(a)
			chosen := config.DefaultBackend
			general := a.generalChecks(err)
			if err == nil {
				chosen = eff.Backend
			}
			all := []sandbox.Diagnosis{{Backend: "berth", Usable: usable(general), Version: version.Version(), Checks: general}}
			all = append(all, a.diagnose(cmd.Context())...)
			if err == nil && eff.Backend == ssh.Name && eff.Config.SSH != "" {
				a.checkHost(cmd.Context(), all, eff.Config)
			}
			if err := a.printDiagnoses(all, chosen, jsonOut); err != nil {
				return err
			}
			for _, d := range all {
				if (d.Backend == chosen || d.Backend == "berth") && !d.Usable {
					return withHint(exitFailure, fmt.Errorf("%s is not usable", d.Backend), "follow the remedies above")
				}
			}
			return knownBackend(chosen)
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "as one JSON object")
	return cmd
}

// checkHost adds a look at the host that is meant to the diagnosis of ssh.
func (a *app) checkHost(ctx context.Context, all []sandbox.Diagnosis, c sandbox.Config) {
	b, err := ssh.New(ssh.Options{StateDir: owner.DefaultStateDir(a.getenv), Helper: a.helperFor, Getenv: a.getenv, Logger: a.logger()})
	if err != nil {
		return // it is told already
	}
	for i := range all {
		if all[i].Backend == ssh.Name {
			check := b.CheckHost(ctx, c.SSH, c.SSHConfig)
			all[i].Checks = append(all[i].Checks, check)
			all[i].Usable = all[i].Usable && check.Result != sandbox.CheckFail
		}
	}
}

// diagnose checks every backend; one that cannot be opened is a failed check.
func (a *app) diagnose(ctx context.Context) []sandbox.Diagnosis {
	var all []sandbox.Diagnosis
	for _, name := range backendNames() {
		b, err := a.openBackend(name, "", a.logger())
		if err != nil {
			_, remedy := classify(err)
			all = append(all, sandbox.Diagnosis{Backend: name, Checks: []sandbox.Check{{Name: "open", Result: sandbox.CheckFail, Detail: err.Error(), Remedy: remedy}}})
			continue
		}
		all = append(all, b.Check(ctx))
	}
	return all
}

// generalChecks look at what every backend needs.
func (a *app) generalChecks(configErr error) []sandbox.Check {
	var checks []sandbox.Check
	add := func(name, detail string, err error, remedy string) {
		c := sandbox.Check{Name: name, Result: sandbox.CheckOK, Detail: detail}
		if err != nil {
			c.Result, c.Detail, c.Remedy = sandbox.CheckFail, firstLine(err.Error()), remedy
		}
		checks = append(checks, c)
	}
	h, err := helperbin.Find(a.helperOptions())
	add("helper", h.Path+" ("+string(h.Source)+")", err, "build it with: make build, or set BERTH_GUEST to its path")
	file := config.DefaultPath(a.getenv)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		file = "none at " + file + ": the defaults apply"
	}
	add("configuration", file, configErr, "correct the file; see: berth config check")
	_, err = a.registry()
	_, remedy := classify(err)
	add("state directory", owner.DefaultStateDir(a.getenv), err, remedy)
	if dir := owner.DefaultRuntimeDir(a.getenv); dir != "" {
		st, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		} else if err == nil && !st.IsDir() {
			err = errors.New("not a directory")
		}
		add("runtime directory", dir, err, "remove it, or set BERTH_RUNTIME_DIR")
	}
	if path, err := exec.LookPath("git"); err != nil {
		checks = append(checks, sandbox.Check{Name: "git", Result: sandbox.CheckWarn, Detail: "not installed here", Remedy: "apt-get install git, if agents shall use it"})
	} else {
		add("git", path, nil, "")
	}
	return checks
}

// usable reports whether no check failed.
func usable(checks []sandbox.Check) bool {
	for _, c := range checks {
		if c.Result == sandbox.CheckFail {
			return false
		}
	}
	return true
}

func (a *app) printDiagnoses(all []sandbox.Diagnosis, chosen string, jsonOut bool) error {
	if jsonOut {
		return writeJSON(a.stdout, map[string]any{"chosen": chosen, "diagnoses": all})
	}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		state := "usable"
		if !d.Usable {
			state = "NOT usable"
		}
		note := ""
		if d.Backend == chosen {
			note = "  (chosen)"
		}
		fmt.Fprintln(a.stdout, strings.TrimSpace(printable(d.Backend+" "+d.Version))+": "+state+note)
		for _, c := range d.Checks {
			fmt.Fprintf(a.stdout, "  %-4s  %-18s %s\n", c.Result, c.Name, printable(c.Detail))
			if c.Remedy != "" && c.Result != sandbox.CheckOK {
				fmt.Fprintf(a.stdout, "        %-18s %s\n", "", "-> "+printable(c.Remedy))
			}
		}
	}
	return nil
}

// printVersion prints the version of berth and of its helper.
func (a *app) printVersion(jsonOut bool) error {
	h, err := helperbin.Find(a.helperOptions())
	helper := h.Path
	if err != nil {
		helper = ""
	}
	if jsonOut {
		return writeJSON(a.stdout, map[string]string{"version": version.Version(), "helper": helper, "helperSource": string(h.Source)})
	}
	_, werr := fmt.Fprintf(a.stdout, "berth %s\n", version.Version())
	if werr == nil && helper != "" {
		_, werr = fmt.Fprintf(a.stdout, "helper %s (%s)\n", helper, h.Source)
	}
	return werr
}
