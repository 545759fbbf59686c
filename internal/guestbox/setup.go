package guestbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

// maxSetupOutput is how much of the end of a setup command's output is told, in
// bytes.
const maxSetupOutput = 2 << 10

// Setup runs a setup command by /bin/sh in the sandbox's working directory. An
// error is a *sandbox.Problem that quotes the end of its output.
func Setup(ctx context.Context, sb sandbox.Sandbox, command string, log *slog.Logger) error {
	out := &lastBytes{limit: maxSetupOutput}
	run, err := sandbox.Start(ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", command}}, nil,
		sandbox.IO{Stdout: out, Stderr: out}, sandbox.StartOptions{Log: log})
	if err != nil {
		return setupProblem("it could not be started: "+err.Error(), out, err)
	}
	status, err := run.Wait(context.WithoutCancel(ctx))
	switch cause := run.Cause(); {
	case cause != nil:
		return setupProblem(fmt.Sprintf("it was ended: %v", cause), out, cause)
	case err != nil:
		return setupProblem(err.Error(), out, err)
	case status.Unknown:
		return setupProblem(status.Reason, out, sandbox.ErrGone)
	case status.Code != 0:
		return setupProblem(fmt.Sprintf("it ended with exit status %d", status.Code), out, errors.New("the setup command failed"))
	}
	return nil
}

func setupProblem(rule string, out *lastBytes, cause error) error {
	if said := out.String(); said != "" {
		rule += fmt.Sprintf("; the end of its output: %q", said)
	}
	return &sandbox.Problem{
		Field: "setupCommand", What: "the setup command failed", Rule: rule,
		Remedy: "mend the command; the sandbox was removed again", Err: cause,
	}
}

// lastBytes keeps the end of what is written, from two streams at once.
type lastBytes struct {
	limit int

	mu   sync.Mutex
	data []byte
}

// Write never fails.
func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if n := len(l.data) - l.limit; n > 0 {
		l.data = append(l.data[:0], l.data[n:]...)
	}
	return len(p), nil
}

// String is what was kept, without white space around it.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.data))
}
