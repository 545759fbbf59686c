package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/probe"
)

func skillsHow(kind) string {
	return "Discovery of 2,000 skills in a workspace on the server: `skills.Discover` walks, reads every `SKILL.md`, hashes what lies beside " +
		"it (every twentieth skill has a script), follows one link to a skill that lies elsewhere in the workspace, and asks by one command " +
		"which of 50 programs the machine has. Over the relay that makes the server 50 ms away, against the same discovery of the same " +
		"files without it. The difference, round by round, divided by 50 ms is the number of round trips that wait for one another."
}

// What is discovered.
const (
	skillCount    = 2000
	skillPrograms = 50
)

// skillTrips is how many round trips in sequence a discovery may take.
const skillTrips = 5

// discovery measures the discovery of skills over a long line.
func discovery(ctx context.Context, b *Bench) (rows []Row, err error) {
	count := b.pick(skillCount, 100)
	far, err := b.at(ctx, sshHostSlow, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, far.remove(ctx)) }()
	if err := plantSkills(far.workspace, count); err != nil {
		return nil, err
	}
	near, err := b.at(ctx, sshHostCounted, far.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, near.remove(ctx)) }()
	contenders := []contender{{name: "ours"}, {name: "the same without the distance"}}
	for i, x := range []*box{far, near} {
		if contenders[i].run, err = x.discover(ctx, count); err != nil {
			return nil, err
		}
	}
	results, err := race(ctx, b.pick(10, 1), 1, contenders...)
	if err != nil {
		return nil, err
	}
	rows, err = compareAll("discover "+grouped(count)+" skills", Cost, results)
	if err != nil {
		return rows, err
	}
	return append(rows, Row{
		Measured: "round trips more than without the distance", Budget: Budget{MaxP50: skillTrips},
		Ours: roundTrips(results[0].times, results[1].times).quantity(Count),
	}), nil
}

// roundTrips is what each time over the long line is longer than the one without, in round trips;
// tenths of them are told.
func roundTrips(far, near series) series {
	out := make(series, 0, len(far))
	for i := range min(len(far), len(near)) {
		out = append(out, math.Round(10*(far[i]-near[i])/(2*halfWay).Seconds())/10)
	}
	return out
}

// discover discovers the skills of a workspace and wants all of them.
func (x *box) discover(ctx context.Context, count int) (func(context.Context) error, error) {
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	roots, prober := []skills.Root{{Path: "skills", Kind: skills.KindWorkspace, Needed: true}}, probe.In(x.sb, fb)
	return func(ctx context.Context) error {
		d, err := skills.Discover(ctx, fb, roots, prober, skills.Options{})
		if err != nil {
			return err
		}
		if len(d.Skills) != count || len(d.Binaries) != skillPrograms || len(d.Notices) > 0 {
			return fmt.Errorf("found %d skills that ask for %d programs, notices %v", len(d.Skills), len(d.Binaries), d.Notices)
		}
		for _, s := range d.Skills {
			if s.Rejected() {
				return fmt.Errorf("skill %s is rejected: %v", s.Name, s.Faults)
			}
		}
		return nil
	}, nil
}

// plantSkills makes so many skills below dir. The last one lies elsewhere, behind a link.
func plantSkills(dir string, count int) error {
	for i := range count {
		name, below := fmt.Sprintf("skill-%04d", i), "skills"
		if i == count-1 {
			below = "elsewhere"
		}
		text := fmt.Sprintf("---\nname: %s\ndescription: Does what number %d does, and says when to use it.\nmetadata:\n"+
			"  openclaw: {requires: {bins: [tool-%d]}}\n---\n# %s\n\n%1024s\n", name, i, i%skillPrograms, name, "Do it.")
		files := map[string]string{skills.FileName: text}
		if i%20 == 0 {
			files["scripts/run.sh"] = "#!/bin/sh\necho " + name + "\n"
		}
		for file, text := range files {
			path := filepath.Join(dir, below, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return err
			}
		}
		if below == "elsewhere" {
			if err := os.Symlink(filepath.Join("..", below, name), filepath.Join(dir, "skills", name)); err != nil {
				return err
			}
		}
	}
	return nil
}
