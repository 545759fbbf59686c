package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
)

// app is what a command may touch of the world around it.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	// executable is this program's own path, started again as the owner process.
	executable string
	// verbose is set by --verbose: log lines on stderr.
	verbose bool

	mu     sync.Mutex
	opened []io.Closer // backends that hold connections, for the end of the program
}

// newApp takes the process's own surroundings.
func newApp() (*app, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, executable: exe}, nil
}

// logger writes warnings to stderr, and everything with --verbose.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, at slog.Attr) slog.Attr {
			if at.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return at
		},
	}))
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	code := a.report(root.ExecuteContext(ctx))
	a.close()
	return code
}

// keep remembers what is to be closed at the end.
func (a *app) keep(c io.Closer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, c)
}

// close gives back what the command has opened: connections to engines, a service and a tunnel
// that were started for it.
func (a *app) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.opened {
		if err := c.Close(); err != nil {
			a.logger().Debug("closing a backend", "error", err)
		}
	}
}
