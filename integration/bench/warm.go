package bench

import (
	"context"
	"errors"
	"os/exec"
)

const commandHow = "`/bin/true` in a sandbox that runs already: by `sandbox.Run`, which starts it under a reaper of its own, waits for it and cleans up behind\n" +
	"it; and by the `berth exec` program, from the second call on. Against `docker exec` through the engine's API (create, start, read to the\n" +
	"end, inspect), the `docker exec` program, a plain `bwrap` (a new sandbox for each command), and `/bin/true` started directly, which is\n" +
	"the floor."

// warmCommand measures commands in a sandbox that is up.
func warmCommand(ctx context.Context, b *Bench) (rows []Row, err error) {
	plain, err := newBwrap()
	if err != nil {
		return nil, err
	}
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	c, err := b.container(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove(ctx)) }()

	const library = "`sandbox.Run`"
	ours := contender{name: library, per: 5, run: func(ctx context.Context) error { return trueCommand(ctx, x.sb) }}
	api := Row{Measured: library, Budget: Budget{MinRatio: 20}}
	if c == nil {
		rows = append(rows, b.noDocker(api, "`docker exec` by the API"))
	} else {
		row, err := b.duel(ctx, api, Speed, ours, contender{
			name: "`docker exec` by the API", run: func(ctx context.Context) error { return c.exec(ctx, "/bin/true") },
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	for _, peer := range []contender{
		{name: "plain `bwrap`", run: once(func(ctx context.Context) *exec.Cmd { return plain.command(ctx, x.workspace, "/bin/true") })},
		{name: "no sandbox", per: 5, run: once(func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/bin/true") })},
	} {
		sense := Speed
		if peer.name == "no sandbox" {
			sense = Cost
		}
		row, err := b.duel(ctx, Row{Measured: library}, sense, ours, peer)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	more, err := b.warmProgram(ctx, x.workspace, c)
	return append(rows, more...), err
}

// duel lets ours race against one peer.
func (b *Bench) duel(ctx context.Context, row Row, sense Sense, ours, peer contender) (Row, error) {
	results, err := race(ctx, b.pick(60, 4), b.pick(5, 1), ours, peer)
	if err != nil {
		return row, err
	}
	return compare(row, sense, results[0], results[1])
}

// warmProgram measures the berth program.
func (b *Bench) warmProgram(ctx context.Context, workspace string, c *container) (rows []Row, err error) {
	berth, err := b.cli()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, berth.remove(ctx)) }()
	program := contender{name: "`berth exec`", run: once(func(ctx context.Context) *exec.Cmd {
		return berth.exec(ctx, workspace, "warm", "/bin/true")
	})}
	peer := contender{name: "`docker exec` program"}
	row := Row{Measured: program.name}
	if c == nil {
		// The floor of a program that starts and does nothing else.
		peer = contender{name: "`berth --version`", run: once(func(ctx context.Context) *exec.Cmd { return berth.command(ctx, "--version") })}
		row, err = b.duel(ctx, row, Cost, program, peer)
		return []Row{row, b.noDocker(Row{Measured: program.name, Ours: row.Ours}, "`docker exec` program")}, err
	}
	peer.run = once(func(ctx context.Context) *exec.Cmd { return c.program(ctx, "/bin/true") })
	row, err = b.duel(ctx, row, Speed, program, peer)
	return []Row{row}, err
}
