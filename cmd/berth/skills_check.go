package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

func newSkillsCheck(a *app, s *skillsFlags) *cobra.Command {
	var lenient bool
	cmd := &cobra.Command{
		Use:   "check [PATH]",
		Short: "Print every fault with file, line, rule and fix; exit code 1 if there is one",
		Long: `Print every fault with file, line, rule and fix; exit code 1 if there is one.

PATH is a skill's folder, its SKILL.md, or a directory of skills; without it, the configured
roots are checked. An error keeps a skill from being loaded; a warning says what was read
leniently, and what other programs may refuse.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.checkSkills(cmd.Context(), s, args)
			if err != nil {
				return err
			}
			return a.printCheck(s, l, lenient)
		},
	}
	cmd.Flags().BoolVar(&lenient, "lenient", false, "exit code 0 when there are warnings only")
	return cmd
}

// checkSkills lists what is at a path, or everything.
func (a *app) checkSkills(ctx context.Context, s *skillsFlags, args []string) (skills.Listing, error) {
	if len(args) == 0 {
		return a.listSkills(ctx, s, skills.Options{NoHashes: true})
	}
	paths, err := s.paths(args)
	if err != nil {
		return skills.Listing{}, err
	}
	if err := fsbridge.ValidPath(paths[0]); err != nil {
		return skills.Listing{}, &usageError{err}
	}
	at := path.Clean(paths[0])
	if strings.EqualFold(path.Base(at), skills.FileName) {
		at = path.Dir(at)
	}
	ld, err := a.skillLoader(s)
	if err != nil {
		return skills.Listing{}, err
	}
	defer ld.close()
	d, err := ld.at(ctx, at)
	if err != nil {
		return skills.Listing{}, err
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err == nil && len(l.Verdicts) == 0 {
		return l, withHint(exitFailure, fmt.Errorf("%s: no %s was found", fsbridge.DisplayPath(paths[0]), skills.FileName), "give a skill's folder, or a directory of such folders")
	}
	return l, err
}

// printCheck prints the faults; the error says that there are some.
func (a *app) printCheck(s *skillsFlags, l skills.Listing, lenient bool) error {
	faults := append([]skills.Fault{}, l.Notices...)
	for _, v := range l.Verdicts {
		faults = append(faults, v.Faults...)
	}
	bad, warnings := 0, 0
	for _, f := range faults {
		if f.Severity == skills.SeverityError {
			bad++
		} else {
			warnings++
		}
		if !s.jsonOut {
			a.printFault(f)
			continue
		}
		f.Path = fsbridge.DisplayPath(f.Path)
		if err := writeJSON(a.stdout, f); err != nil {
			return err
		}
	}
	if !s.jsonOut {
		fmt.Fprintf(a.stdout, "%d skills, %d errors, %d warnings\n", len(l.Verdicts), bad, warnings)
	}
	if bad > 0 || warnings > 0 && !lenient {
		return commandExit(exitFailure)
	}
	return nil
}
