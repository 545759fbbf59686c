package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

// concurrentHow is the same of every backend.
func concurrentHow(kind) string {
	return "Each command writes 1 MiB which no other command writes; every byte is compared as it arrives. All commands at " +
		"the same time in one sandbox, against the same commands one after the other. The sandbox is made with a limit " +
		"of 4,096 processes: the limit counts threads, and those of the reaper that each command has."
}

const (
	// commandLines is the number of lines that each command writes, of commandLine bytes.
	commandLines  = 16 << 10
	commandLine   = 64
	commandOutput = commandLines * commandLine
	// concurrentPids is the limit of processes in the sandbox.
	concurrentPids = 4096
)

// concurrent measures many commands in one sandbox.
func concurrent(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, func(s *sandbox.Spec) { s.Config.Limits.Pids = concurrentPids })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	n := b.pick(200, 40)
	var mu sync.Mutex
	var failures []error
	one := func(ctx context.Context, i int) {
		if err := writeMuch(ctx, x.sb, i); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
		}
	}
	together := contender{name: "together", run: func(ctx context.Context) error {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { one(ctx, i) })
		}
		wg.Wait()
		return ctx.Err()
	}}
	inTurn := contender{name: "one after the other", run: func(ctx context.Context) error {
		for i := range n {
			one(ctx, i)
		}
		return ctx.Err()
	}}
	rounds := b.pick(5, 1)
	results, err := race(ctx, rounds, 0, together, inTurn)
	if err != nil {
		return nil, err
	}
	row, err := compare(Row{Measured: fmt.Sprintf("%d commands with 1 MiB of output each", n)}, Speed, results[0], results[1])
	if err != nil {
		return nil, err
	}
	wrong := Row{
		Measured: fmt.Sprintf("of %d commands, those that failed or wrote other bytes", 2*rounds*n),
		Ours:     tally(len(failures), 2*rounds*n), Budget: Budget{Zero: true},
	}
	if len(failures) > 0 {
		wrong.Note = tail(failures[0].Error())
	}
	return []Row{row, wrong}, nil
}

// writeMuch runs the command number i and compares what it writes.
func writeMuch(ctx context.Context, sb sandbox.Sandbox, i int) error {
	line := fmt.Sprintf("%-*d", commandLine-1, i)
	out := &expect{line: []byte(line + "\n")}
	r, err := sandbox.Run(ctx, sb, sandbox.Command{
		Argv: []string{"awk", "-v", "line=" + line, "-v", fmt.Sprintf("n=%d", commandLines), "BEGIN { while (n--) print line }"},
	}, nil, sandbox.RunOptions{Stdout: out, OutputLimit: 4096})
	if err := succeeded(r, err); err != nil {
		return fmt.Errorf("command %d: %w", i, err)
	}
	if out.n != commandOutput || out.wrong {
		return fmt.Errorf("command %d: %d bytes, wrong ones among them: %t", i, out.n, out.wrong)
	}
	return nil
}

// expect compares what is written with a line repeated without end.
type expect struct {
	line  []byte
	n     int
	wrong bool
}

func (e *expect) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		want := e.line[e.n%len(e.line):]
		k := min(len(want), len(rest))
		if !bytes.Equal(rest[:k], want[:k]) {
			e.wrong = true
		}
		rest = rest[k:]
		e.n += k
	}
	return len(p), nil
}
