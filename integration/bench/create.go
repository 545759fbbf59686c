package bench

import (
	"context"
	"errors"
	"os/exec"

	"github.com/workberth/workberth/sandbox"
)

// createHow tells what create does.
func createHow(k kind) string {
	return "A new sandbox on a workspace that exists, and `/bin/true` in it as the first command; removing it again is not timed. " +
		k.choose("Against the engine's API that makes a container with the same settings on the same workspace, starts it, and runs "+
			"`/bin/true` in it (exec create, start, read to the end, inspect), which checks and records nothing.",
			"Against a plain `bwrap` with the same namespaces and the same view of the file system, which checks, records and guards "+
				"nothing, and against "+k.program("run --rm")+" without a network.")
}

// Budgets of making a sandbox and running the first command.
const (
	createContainer = 1.1 // the time of the engine's API
	createBwrap     = 2.5 // the time of plain bwrap
	createRun       = 15  // times as fast as docker run
)

// create measures the way to the first result.
func create(ctx context.Context, b *Bench) (rows []Row, err error) {
	ws, err := b.workspace()
	if err != nil {
		return nil, err
	}
	whole := b.creation("create and first command", ws, trueCommand)
	half := b.creation("create", ws, nothing)
	var duels []duel
	if b.kind().contained {
		duels = []duel{
			{row: Row{Measured: whole.name, Budget: Budget{MaxRatio: createContainer}}, sense: Cost, ours: whole, peer: b.plainCreation(ws, true)},
			{row: Row{Measured: "of it, to create"}, sense: Cost, ours: half, peer: b.plainCreation(ws, false)},
		}
	} else {
		plain, err := newBwrap()
		if err != nil {
			return nil, err
		}
		peer := contender{name: "plain `bwrap`", per: 3, run: once(func(ctx context.Context) *exec.Cmd {
			return plain.command(ctx, ws, "/bin/true")
		})}
		duels = []duel{
			{row: Row{Measured: whole.name, Budget: Budget{MaxRatio: createBwrap}}, sense: Cost, ours: whole, peer: peer},
			{row: Row{Measured: "of it, to create"}, sense: Cost, ours: half, peer: peer},
			{row: Row{Measured: whole.name, Budget: Budget{MinRatio: createRun}}, sense: Speed, ours: whole, peer: b.dockerRun(ws)},
		}
	}
	for _, d := range duels {
		row, err := b.fight(ctx, b.kind().fewer(60, 30), d)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	more, err := b.createProgram(ctx, ws)
	return append(rows, more...), err
}

// creation makes a sandbox on the workspace, uses it, and removes it when the clock has stopped.
func (b *Bench) creation(name, ws string, use func(context.Context, sandbox.Sandbox) error) contender {
	var made *box
	return contender{
		name: name, per: b.kind().fewer(3, 1),
		run: func(ctx context.Context) error {
			sb, err := b.Backend.Ensure(ctx, b.spec(ws))
			if err != nil {
				return err
			}
			made = &box{sb: sb, backend: b.Backend}
			return use(ctx, sb)
		},
		after: func(ctx context.Context) error {
			if made == nil {
				return nil
			}
			defer func() { made = nil }()
			return made.remove(ctx)
		},
	}
}

// nothing is done with a sandbox.
func nothing(context.Context, sandbox.Sandbox) error { return nil }

// plainCreation makes a container on the workspace by the engine's API, and removes it when the clock
// has stopped.
func (b *Bench) plainCreation(ws string, use bool) contender {
	var made *container
	c := contender{name: "create and start by the API"}
	if use {
		c.name = "create, start and exec by the API"
	}
	c.run = func(ctx context.Context) (err error) {
		if made, err = b.container(ctx, ws); err != nil || !use {
			return err
		}
		return made.exec(ctx, "/bin/true")
	}
	c.after = func(ctx context.Context) error { return made.remove(ctx) }
	return c
}

// dockerRun makes, uses and removes a container by the docker program.
func (b *Bench) dockerRun(ws string) contender {
	c := contender{name: kind{engine: docker}.program("run --rm")}
	if b.Engine != nil {
		c.run = once(func(ctx context.Context) *exec.Cmd {
			return b.Engine.command(ctx, "run", "--rm", "--network", "none", "-v", ws+":/workspace", b.Engine.image, "/bin/true")
		})
	}
	return c
}

// createProgram measures the first call of the program, which starts an owner process too.
func (b *Bench) createProgram(ctx context.Context, ws string) (rows []Row, err error) {
	berth, err := b.cli()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, berth.remove(ctx)) }()
	first := contender{
		name: "`berth exec`, the first call",
		run: once(func(ctx context.Context) *exec.Cmd {
			return berth.exec(ctx, ws, "cold", "/bin/true")
		}),
		after: berth.remove,
	}
	results, err := race(ctx, b.pick(b.kind().fewer(20, 10), b.kind().fewer(2, 1)), b.pick(1, 0), first)
	if err != nil {
		return nil, err
	}
	return []Row{{Measured: first.name, Ours: results[0].times.quantity(Seconds)}}, results[0].err
}
