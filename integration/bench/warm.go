package bench

import (
	"context"
	"errors"
	"os/exec"
)

// commandHow tells what warmCommand does.
func commandHow(k kind) string {
	return "`/bin/true` in a sandbox that runs already: by `sandbox.Run`, which starts it under a reaper of its own, waits for it and " +
		"cleans up behind it; and by the `berth exec` program, from the second call on. Against " + k.program("exec") +
		" through the engine's API (create, start, read to the end, inspect), the " + k.program("exec") + " program, " +
		k.choose("", "a plain `bwrap` (a new sandbox for each command), ") + "and `/bin/true` started directly, which is the floor."
}

// commandTimes is what a command of ours has to be faster than one through the engine's API.
const commandTimes = 20

// warmCommand measures commands in a sandbox that is up.
func warmCommand(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	rivals, done, err := b.rivals(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()

	ours := contender{name: "`sandbox.Run`", per: 5, run: func(ctx context.Context) error { return trueCommand(ctx, x.sb) }}
	duels := []duel{{
		row: Row{Measured: ours.name, Budget: Budget{MinRatio: commandTimes}}, sense: Speed,
		ours: ours, peer: contender{name: b.kind().program("exec") + " by the API"},
	}}
	program := duel{row: Row{Measured: "`berth exec`"}, sense: Speed, peer: contender{name: b.kind().program("exec") + " program"}}
	for _, r := range rivals {
		runTrue := once(func(ctx context.Context) *exec.Cmd { return r.command(ctx, nil, "/bin/true") })
		if c := r.container; c != nil {
			duels[0].peer.run = func(ctx context.Context) error { return c.exec(ctx, "/bin/true") }
			program.peer.run = runTrue
		} else {
			duels = append(duels, duel{row: Row{Measured: ours.name}, sense: Speed, ours: ours, peer: contender{name: r.name, run: runTrue}})
		}
	}
	duels = append(duels, duel{row: Row{Measured: ours.name}, sense: Cost, ours: ours, peer: contender{
		name: "no sandbox", per: 5, run: once(func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/bin/true") }),
	}})
	for _, d := range duels {
		row, err := b.fight(ctx, 60, d)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	more, err := b.warmProgram(ctx, x.workspace, program)
	return append(rows, more...), err
}

// duel is a row to be, of ours against one peer. A peer that cannot run is an engine that is missing.
type duel struct {
	row        Row
	sense      Sense
	ours, peer contender
}

// fight makes the row.
func (b *Bench) fight(ctx context.Context, rounds int, d duel) (Row, error) {
	if d.peer.run == nil {
		return lacksEngine(d.row, d.peer.name), nil
	}
	results, err := race(ctx, b.pick(rounds, 2), b.pick(b.kind().fewer(5, 2), 1), d.ours, d.peer)
	if err != nil {
		return d.row, err
	}
	return compare(d.row, d.sense, results[0], results[1])
}

// warmProgram measures the berth program.
func (b *Bench) warmProgram(ctx context.Context, workspace string, d duel) (rows []Row, err error) {
	berth, err := b.cli()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, berth.remove(ctx)) }()
	d.ours = contender{name: d.row.Measured, run: once(func(ctx context.Context) *exec.Cmd {
		return berth.exec(ctx, workspace, "warm", "/bin/true")
	})}
	if d.peer.run == nil {
		// The floor of a program that starts and does nothing else.
		missing := d.peer.name
		d.sense, d.peer = Cost, contender{name: "`berth --version`", run: once(func(ctx context.Context) *exec.Cmd {
			return berth.command(ctx, "--version")
		})}
		row, err := b.fight(ctx, 60, d)
		return []Row{row, lacksEngine(Row{Measured: d.row.Measured, Ours: row.Ours}, missing)}, err
	}
	row, err := b.fight(ctx, 60, d)
	return []Row{row}, err
}
