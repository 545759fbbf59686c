package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
)

// withRunning connects to the target's sandbox, which must be running.
func (a *app) withRunning(ctx context.Context, t *target, fn func(context.Context, *owner.Handle) error) error {
	s, err := a.dial(ctx, t)
	if err != nil {
		return err
	}
	defer s.Close()
	return fn(ctx, s)
}

func newPs(a *app) *cobra.Command {
	t := &target{}
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the background commands of a sandbox",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.withRunning(cmd.Context(), t, func(ctx context.Context, s *owner.Handle) error {
				list, err := s.Commands(ctx)
				if err != nil {
					return err
				}
				return a.printCommands(list, jsonOut)
			})
			if errors.Is(err, sandbox.ErrNotFound) {
				return a.printCommands(nil, jsonOut) // no sandbox, no commands
			}
			return err
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per command")
	return cmd
}

func (a *app) printCommands(list []sandbox.CommandInfo, jsonOut bool) error {
	if jsonOut {
		for _, c := range list {
			if err := writeJSON(a.stdout, c); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, 0, len(list))
	for _, c := range list {
		exit := ""
		if c.Status != nil {
			exit = strconv.Itoa(c.Status.Code)
			if c.Status.Unknown {
				exit = "unknown"
			}
		}
		rows = append(rows, []string{
			string(c.ID), string(c.State), exit, strconv.Itoa(c.Pid), c.Started.Local().Format(time.DateTime),
			strconv.FormatInt(c.Stdout+c.Stderr, 10), strings.Join(c.Argv, " "),
		})
	}
	return table(a.stdout, []string{"ID", "STATE", "EXIT", "PID", "STARTED", "BYTES", "COMMAND"}, rows)
}

func newLogs(a *app) *cobra.Command {
	t := &target{}
	var stderr, jsonOut bool
	r := owner.LogsRequest{}
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show the output of a background command",
		Long: `Show the output of a background command, byte for byte.

The beginning and the end are kept (1 MiB, or --output-limit at the start). --json
prints the output with the cursor to go on with, so that a program can poll without
losing or repeating a byte.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Cursor < 0 {
				return &usageError{errors.New("--cursor must not be negative")}
			}
			r.ID = sandbox.CommandID(args[0])
			r.Stream = sandbox.StreamStdout
			if stderr {
				r.Stream = sandbox.StreamStderr
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return a.withRunning(ctx, t, func(ctx context.Context, s *owner.Handle) error {
				if jsonOut {
					return a.logsJSON(ctx, s, r)
				}
				res, err := s.Logs(ctx, r, a.stdout)
				if res.Dropped > 0 {
					fmt.Fprintf(a.stderr, "berth: %d bytes are no longer kept\n", res.Dropped)
				}
				return err
			})
		},
	}
	t.register(cmd.Flags())
	f := cmd.Flags()
	f.BoolVarP(&r.Follow, "follow", "f", false, "go on until the command has ended")
	f.Int64Var(&r.Cursor, "cursor", 0, "start at this byte of the output")
	f.BoolVar(&stderr, "stderr", false, "standard error instead of standard output")
	f.BoolVar(&jsonOut, "json", false, "one JSON object with output, next cursor and whether it has ended")
	return cmd
}

func (a *app) logsJSON(ctx context.Context, s *owner.Handle, r owner.LogsRequest) error {
	keep := sandbox.NewOutputBuffer(sandbox.MaxOutputLimit)
	res, err := s.Logs(ctx, r, keep)
	if err != nil {
		return err
	}
	out := keep.Output()
	return writeJSON(a.stdout, struct {
		owner.LogsResult
		Output textJSON `json:"output"`
	}{res, newTextJSON(out.Bytes(), out.Total, out.Dropped)})
}

func newStdin(a *app) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "stdin ID",
		Short: "Pass standard input on to a background command and close it at the end",
		Long:  "Pass standard input on to a background command that was started with -i, and close its standard input at the end.",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRunning(cmd.Context(), t, func(ctx context.Context, s *owner.Handle) error {
				return s.Stdin(ctx, sandbox.CommandID(args[0]), a.stdin)
			})
		},
	}
	t.register(cmd.Flags())
	return cmd
}

func newKill(a *app) *cobra.Command {
	t := &target{}
	var name string
	var grace time.Duration
	var jsonOut bool
	cmd := &cobra.Command{
		Use:   "kill ID...",
		Short: "End background commands and everything they started",
		Long: `End background commands and everything they started: SIGTERM, a grace, SIGKILL,
until nothing is left. The answer is gone, survivors or unknown; anything but gone
is exit code 1. With --signal the command's process group gets that signal instead.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sig := 0
			if name != "" {
				var err error
				if sig, err = parseSignal(name); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("grace") && (grace <= 0 || grace > time.Hour) {
				return &usageError{fmt.Errorf("--grace %v: give a time above 0 and up to 1h", grace)}
			}
			return a.withRunning(cmd.Context(), t, func(ctx context.Context, s *owner.Handle) error {
				return a.eachPath(args, func(id string) error {
					if sig != 0 {
						return s.Signal(ctx, sandbox.CommandID(id), sig)
					}
					res, err := s.Kill(ctx, sandbox.CommandID(id), grace)
					if err != nil {
						return err
					}
					return a.printKilled(id, res, jsonOut)
				})
			})
		},
	}
	t.register(cmd.Flags())
	cmd.Flags().StringVarP(&name, "signal", "s", "", "send this signal instead, such as HUP or 1")
	cmd.Flags().DurationVar(&grace, "grace", 0, "time between SIGTERM and SIGKILL (default 2s)")
	cmd.Flags().BoolVar(&jsonOut, "json", false, "one JSON object per command")
	return cmd
}

func (a *app) printKilled(id string, res sandbox.TerminateResult, jsonOut bool) error {
	var err error
	if jsonOut {
		err = writeJSON(a.stdout, struct {
			ID string `json:"id"`
			sandbox.TerminateResult
		}{id, res})
	} else {
		_, err = fmt.Fprintln(a.stdout, id, res.Outcome)
	}
	if err == nil && res.Outcome != sandbox.TerminationGone {
		return withHint(exitFailure, fmt.Errorf("command %s: %s %v", id, res.Outcome, res.Pids), "end the sandbox with: berth sandbox stop")
	}
	return err
}

// parseSignal reads a signal by name, with or without SIG, or by number.
func parseSignal(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= 64 {
		return n, nil
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if n := unix.SignalNum(name); n != 0 {
		return int(n), nil
	}
	return 0, &usageError{fmt.Errorf("%q is no signal; give a name such as TERM or a number from 1 to 64", s)}
}

// newOwner is the private role behind every sandbox that is kept warm.
func newOwner(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    ownerRole,
		Hidden: true,
		Args:   exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if isTerminal(a.stdin) {
				return &usageError{errors.New("this command is started by berth itself")}
			}
			err := owner.Main(cmd.Context(), os.Stdin, os.Stdout, a.openBackend, a.logger())
			if err != nil {
				a.logger().Error("owner", "error", err)
				return commandExit(exitFailure)
			}
			return nil
		},
	}
}
