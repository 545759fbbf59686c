package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
)

// execResult is what exec --json prints.
type execResult struct {
	sandbox.ExitStatus
	TimedOut    bool                     `json:"timedOut"`
	Cancelled   bool                     `json:"cancelled"`
	ElapsedMS   float64                  `json:"elapsedMs"`
	Stdout      textJSON                 `json:"stdout"`
	Stderr      textJSON                 `json:"stderr"`
	Termination *sandbox.TerminateResult `json:"termination,omitempty"`
	// CleanupError never changes the exit code.
	CleanupError string `json:"cleanupError,omitempty"`
}

// execForeground runs a command to its end with the streams passed through.
func (a *app) execForeground(ctx context.Context, s *owner.Handle, x *execFlags, argv, env []string) error {
	stdout, stderr := newOutput(a.stdout, x.limit), newOutput(a.stderr, x.limit)
	if x.jsonOut {
		limit := x.limit
		if limit == 0 {
			limit = defaultJSONOutput
		}
		stdout, stderr = newCapture(limit), newCapture(limit)
	}
	streams := proc.IO{Stdout: stdout, Stderr: stderr}
	if x.stdin {
		streams.Stdin = a.stdin
	}
	restore := func() {}
	if x.tty && x.stdin {
		var err error
		if restore, err = rawTerminal(a.stdin); err != nil {
			return err
		}
	}
	defer restore()

	begin := time.Now()
	p, err := s.Runner().Start(ctx, x.procSpec(a, argv, env), streams)
	if err != nil {
		return err
	}
	r := a.await(ctx, x, p)
	r.ElapsedMS = float64(time.Since(begin).Microseconds()) / 1000
	restore()
	if err := errors.Join(stdout.finish(), stderr.finish()); err != nil {
		return withHint(exitFailure, fmt.Errorf("the command's output could not be written: %w", err), "its exit code was "+fmt.Sprint(r.Code))
	}
	return a.finishExec(x, r, stdout, stderr)
}

// await waits for the command and deals with the timeout and with signals to us.
func (a *app) await(ctx context.Context, x *execFlags, p proc.Process) execResult {
	waited := make(chan execResult, 1)
	waitCtx, stopWaiting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWaiting()
	go func() {
		st, err := p.Wait(waitCtx)
		r := execResult{ExitStatus: sandbox.ExitStatus{Code: st.Code, Signal: st.Signal, Unknown: st.Unknown, Reason: st.Reason, Leftover: st.Leftover}}
		if err != nil {
			r.Unknown, r.Reason = true, err.Error()
		}
		waited <- r
	}()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH)
	defer signal.Stop(signals)
	var timeout <-chan time.Time
	if x.timeout > 0 {
		timer := time.NewTimer(x.timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	end := func(mark func(*execResult)) execResult {
		// The caller has given up; ending the tree must not depend on it.
		endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), x.endTime())
		defer cancel()
		res, err := p.Terminate(endCtx, x.grace)
		var r execResult
		select {
		case r = <-waited:
		case <-endCtx.Done():
			r = execResult{ExitStatus: sandbox.ExitStatus{Unknown: true, Reason: "the sandbox did not answer"}}
		}
		r.Termination = &sandbox.TerminateResult{Outcome: sandbox.Termination(res.Outcome), Pids: res.Pids}
		if err != nil {
			r.CleanupError = err.Error()
		}
		mark(&r)
		return r
	}
	interrupts := 0
	for {
		select {
		case r := <-waited:
			return r
		case <-timeout:
			return end(func(r *execResult) { r.TimedOut = true })
		case <-ctx.Done():
			return end(func(r *execResult) { r.Cancelled = true })
		case sig := <-signals:
			n, _ := sig.(syscall.Signal)
			switch {
			case n == syscall.SIGWINCH:
				if x.tty {
					_ = p.Resize(ctx, terminalSize(a.stdout)) // the next change tries again
				}
			case (n == syscall.SIGINT || n == syscall.SIGQUIT) && interrupts == 0:
				interrupts++
				if err := p.Signal(ctx, int(n)); err != nil {
					return end(func(r *execResult) { r.Cancelled = true })
				}
			default:
				return end(func(r *execResult) { r.Cancelled = true })
			}
		}
	}
}

// endTime bounds the end of a command.
func (x *execFlags) endTime() time.Duration {
	if x.grace > 0 {
		return x.grace + 10*time.Second
	}
	return proc.DefaultGrace + 10*time.Second
}

// finishExec turns the result into output and exit code.
func (a *app) finishExec(x *execFlags, r execResult, stdout, stderr *output) error {
	if x.jsonOut {
		r.Stdout, r.Stderr = stdout.json(), stderr.json()
		if err := writeJSON(a.stdout, r); err != nil {
			return err
		}
	}
	if t := r.Termination; t != nil && t.Outcome != sandbox.TerminationGone {
		fmt.Fprintf(a.stderr, "berth: warning: ending the command: %s %v\n", t.Outcome, t.Pids)
	}
	if r.CleanupError != "" {
		fmt.Fprintln(a.stderr, "berth: warning: cleanup: "+printable(firstLine(r.CleanupError)))
	}
	switch {
	case r.TimedOut:
		return withHint(exitTimeout, fmt.Errorf("timed out after %v and was ended", x.timeout), "allow more with --timeout, or run it with --background")
	case r.Unknown:
		return withHint(exitRefused, fmt.Errorf("how the command ended is unknown: %s", r.Reason), "look at what it left, then run it again; see: berth sandbox ls")
	case r.Cancelled && r.Code == 0:
		return commandExit(128 + int(syscall.SIGTERM))
	case r.Code != 0:
		return commandExit(r.Code)
	}
	return nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalSize is the size of the terminal behind w, 24 by 80 without one.
func terminalSize(w io.Writer) proc.Size {
	if f, ok := w.(*os.File); ok {
		if ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && ws.Row > 0 && ws.Col > 0 {
			return proc.Size{Rows: ws.Row, Cols: ws.Col}
		}
	}
	return proc.Size{Rows: 24, Cols: 80}
}

// rawTerminal switches our own terminal to raw mode; restore may be called twice.
func rawTerminal(in io.Reader) (restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}, nil
	}
	old, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	done := false
	return func() {
		if !done {
			done = true
			_ = term.Restore(int(f.Fd()), old) // nothing can be done about it on the way out
		}
	}, nil
}
