package bench

import (
	"context"
	"errors"
	"os/exec"

	"github.com/workberth/workberth/sandbox"
)

const createHow = "A new sandbox on a workspace that exists, and `/bin/true` in it as the first command; removing it again is not timed. Against a plain\n" +
	"`bwrap` with the same namespaces and the same view of the file system, which checks, records and guards nothing, and against\n" +
	"`docker run --rm` without a network."

// create measures the way to the first result.
func create(ctx context.Context, b *Bench) (rows []Row, err error) {
	plain, err := newBwrap()
	if err != nil {
		return nil, err
	}
	ws, err := b.workspace()
	if err != nil {
		return nil, err
	}
	ours := b.creation("create and first command", ws, trueCommand)
	peer := contender{name: "plain `bwrap`", per: 3, run: once(func(ctx context.Context) *exec.Cmd {
		return plain.command(ctx, ws, "/bin/true")
	})}
	row, err := b.duel(ctx, Row{Measured: ours.name, Budget: Budget{MaxRatio: 2.5}}, Cost, ours, peer)
	if err != nil {
		return nil, err
	}
	rows = append(rows, row)
	half, err := b.duel(ctx, Row{Measured: "of it, to create"}, Cost, b.creation("create", ws, nothing), peer)
	if err != nil {
		return rows, err
	}
	rows = append(rows, half)

	engine := Row{Measured: ours.name, Budget: Budget{MinRatio: 15}}
	if b.Docker == nil {
		rows = append(rows, b.noDocker(engine, "`docker run --rm`"))
	} else {
		row, err := b.duel(ctx, engine, Speed, ours, contender{name: "`docker run --rm`", run: once(func(ctx context.Context) *exec.Cmd {
			return b.Docker.command(ctx, "run", "--rm", "--network", "none", "-v", ws+":/workspace", b.Docker.image, "/bin/true")
		})})
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
		name: name, per: 3,
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
	results, err := race(ctx, b.pick(20, 2), 1, first)
	if err != nil {
		return nil, err
	}
	return []Row{{Measured: first.name, Ours: results[0].times.quantity(Seconds)}}, results[0].err
}
