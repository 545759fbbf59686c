package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// Exit codes of berth's own failures; every other code is the command's.
const (
	exitFailure       = 1   // a file operation or a check failed
	exitTimeout       = 124 // --timeout ended the command
	exitRefused       = 125 // refused, misconfigured, or the sandbox is not to be had
	exitNotExecutable = 126 // the command exists and cannot be executed
	exitNoCommand     = 127 // there is no such command
)

// commandExit is a command's own exit code on its way to the process's.
type commandExit int

// Error is never shown.
func (e commandExit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that cannot be meant.
type usageError struct{ err error }

// Error gives the reason.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

// hinted adds a remedy to an error.
type hinted struct {
	err    error
	remedy string
	code   int
}

// Error gives the reason.
func (e *hinted) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *hinted) Unwrap() error { return e.err }

// withHint is err with a remedy and an exit code.
func withHint(code int, err error, remedy string) error {
	return &hinted{err: err, remedy: remedy, code: code}
}

// report prints what went wrong, one line of reason and one of remedy, and
// returns the exit code.
func (a *app) report(err error) int {
	var exit commandExit
	if err == nil {
		return 0
	}
	if errors.As(err, &exit) {
		return int(exit)
	}
	code, remedy := classify(err)
	if errors.Is(err, syscall.EPIPE) && !errors.Is(err, fsbridge.ErrOutcomeUnknown) {
		return code // the reader of our output has left; it knows
	}
	fmt.Fprintln(a.stderr, "berth: "+printable(firstLine(err.Error())))
	if remedy != "" {
		fmt.Fprintln(a.stderr, "berth: "+printable(firstLine(remedy)))
	}
	return code
}

// classify maps an error to exit code and remedy.
func classify(err error) (code int, remedy string) {
	code = exitFailure
	var (
		hint    *hinted
		usage   *usageError
		problem *sandbox.Problem
		start   *proc.StartError
		path    *fsbridge.PathError
		conf    *config.Error
	)
	switch {
	case errors.As(err, &hint):
		return hint.code, hint.remedy
	case errors.As(err, &usage):
		return exitRefused, "see berth help, or the command with --help"
	case errors.As(err, &start):
		return startCode(start)
	case errors.As(err, &conf):
		return exitRefused, "correct the file, then run: berth config check"
	case errors.As(err, &problem):
		return exitRefused, problem.Remedy
	case errors.As(err, &path):
		return exitFailure, pathRemedy(path)
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, fsbridge.ErrUnavailable), errors.Is(err, fsbridge.ErrOutcomeUnknown):
		return exitRefused, "run the command again to start the sandbox anew; see: berth sandbox ls"
	case errors.Is(err, sandbox.ErrRefused), errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, sandbox.ErrRevoked),
		errors.Is(err, sandbox.ErrInUse), errors.Is(err, sandbox.ErrNotFound), errors.Is(err, sandbox.ErrUnknownBackend):
		return exitRefused, "see: berth doctor"
	case errors.Is(err, context.Canceled):
		return 128 + int(syscall.SIGINT), ""
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout, "allow more with --timeout"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return exitFailure, ""
	}
	return code, ""
}

// startCode is the exit code of a command that could not be started.
func startCode(e *proc.StartError) (int, string) {
	switch e.Reason {
	case proc.NoCommand:
		return exitNoCommand, "it has to be installed where the command runs: in the image, on the host, or in the system directories of this machine"
	case proc.NotExecutable:
		return exitNotExecutable, "give it the execute bit and, for a script, a first line such as #!/bin/sh"
	case proc.NoDirectory, proc.NotDirectory, proc.OutsideDir:
		return exitRefused, "give --workdir a directory that exists in the sandbox; see: berth fs ls"
	case proc.LimitReached:
		return exitNotExecutable, "end what runs (berth ps, berth kill) or raise limits in the configuration"
	case proc.BadSpec:
		return exitRefused, "check the command, its environment and its directory"
	default:
		return exitRefused, "see: berth doctor"
	}
}

// pathRemedy is what to do about a failed file operation.
func pathRemedy(e *fsbridge.PathError) string {
	if e.Hint != "" {
		return e.Hint
	}
	switch {
	case errors.Is(e, fsbridge.ErrInvalidPath):
		return "give a path of 1 to 4096 bytes without NUL"
	case errors.Is(e, fsbridge.ErrOutsideRoot):
		return "only paths inside the mounts are served; see: berth sandbox explain " + fsbridge.DisplayPath(e.Path)
	case errors.Is(e, fsbridge.ErrReadOnly):
		return "this mount cannot be changed; see: berth sandbox explain " + fsbridge.DisplayPath(e.Path)
	case errors.Is(e, fsbridge.ErrConflict):
		return "read the file again and decide; its present hash is in the message"
	case errors.Is(e, fsbridge.ErrOutcomeUnknown):
		return "read the file again before you repeat the change"
	case errors.Is(e, fsbridge.ErrNotRegular):
		return "only regular files have content; see: berth fs stat " + fsbridge.DisplayPath(e.Path)
	case errors.Is(e, fs.ErrExist):
		return "choose another name, or remove it first"
	case errors.Is(e, fs.ErrNotExist):
		return "see what is there with: berth fs ls"
	case errors.Is(e, syscall.ENOSPC):
		return "make room; nothing was changed"
	case errors.Is(e, fs.ErrPermission):
		return "see owner and mode with: berth fs stat " + fsbridge.DisplayPath(e.Path)
	}
	return ""
}

// firstLine cuts a message to one line.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// printable replaces control characters, bidirectional overrides and bytes that
// are not text, so that a hostile name cannot act on the terminal.
func printable(s string) string {
	return strings.ReplaceAll(fsbridge.DisplayPath(s), `\\`, `\`)
}
