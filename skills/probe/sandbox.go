package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

const (
	// runTime is how long the command of a prober may take.
	runTime = 30 * time.Second
	// maxAnswer bounds what it may answer, in bytes.
	maxAnswer = 1 << 20
)

// In asks a sandbox, with one command, or by its files where the image has no shell. b is a bridge
// of the sandbox. One that runs no commands has nothing that a skill could use: its platform is not
// known either.
func In(sb sandbox.Sandbox, b fsbridge.Bridge) Either {
	return Either{
		Shell: Shell{Platform: "linux", Run: func(ctx context.Context, argv []string) ([]byte, error) { return run(ctx, sb, argv) }},
		Path:  Path{Bridge: b, Platform: "linux", Env: sb.Info().Config.Env},
	}
}

// run runs a command to its end.
func run(ctx context.Context, sb sandbox.Sandbox, argv []string) ([]byte, error) {
	r, err := sandbox.Run(ctx, sb, sandbox.Command{Argv: argv}, nil, sandbox.RunOptions{Timeout: runTime, OutputLimit: maxAnswer})
	var start *sandbox.StartError
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, fmt.Errorf("%w: %w", ErrNoCommands, err)
	case errors.As(err, &start) && (start.Reason == sandbox.StartNoCommand || start.Reason == sandbox.StartNotExecutable):
		return nil, fmt.Errorf("%w: %w", ErrNoShell, err)
	case err != nil:
		return nil, err
	case r.Cancelled:
		return nil, context.Cause(ctx)
	case r.TimedOut:
		return nil, fmt.Errorf("its shell has not answered within %v: %w", runTime, context.DeadlineExceeded)
	case r.Status.Unknown:
		return nil, fmt.Errorf("the end of its shell is unknown: %s", r.Status.Reason)
	case r.Status.Code != 0:
		return nil, fmt.Errorf("its shell ended with exit code %d", r.Status.Code)
	case r.Stdout.Dropped > 0:
		return nil, fmt.Errorf("its shell has answered with more than %d bytes: %w", maxAnswer, fsbridge.ErrTooLarge)
	}
	return r.Stdout.Bytes(), nil
}
