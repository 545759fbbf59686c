package main

import (
	"context"
	"io"
	"log/slog"
	"os"
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
	return a.report(root.ExecuteContext(ctx))
}
