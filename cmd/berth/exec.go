package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/workberth/workberth/internal/config"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/owner"
	"github.com/workberth/workberth/sandbox"
)

// maxTimeout bounds --timeout.
const maxTimeout = 30 * 24 * time.Hour

// execFlags are the flags of exec.
type execFlags struct {
	stdin, tty, background, keep, jsonOut bool
	env                                   []string
	envFile, workdir, outputLimit         string
	timeout, grace                        time.Duration
	limit                                 int64
}

func newExec(a *app) *cobra.Command {
	t, x := &target{}, &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARG...]",
		Short: "Run a command in a sandbox",
		Long: `Run a command in a sandbox, started on demand and kept warm for the next call.

Standard input (with -i), output, error and the exit code pass through exactly; a
death by signal N is exit code 128+N. When the command ends, what it left running
is ended too, unless --keep is given. berth's own failures: 125 refused or
misconfigured, 126 cannot be executed, 127 no such command, 124 timed out.`,
		Example: `  berth exec -- git status
  echo hello | berth exec -i -- wc -c
  berth exec -it -- bash
  berth exec --background -- python3 -m http.server`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.exec(cmd, t, x, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	t.register(f)
	f.BoolVarP(&x.stdin, "interactive", "i", false, "pass standard input on; otherwise it is empty")
	f.BoolVarP(&x.tty, "tty", "t", false, "run on a terminal of its own")
	f.StringArrayVarP(&x.env, "env", "e", nil, "set KEY=VALUE, or take KEY from this environment; repeatable")
	f.StringVar(&x.envFile, "env-file", "", "set the KEY=VALUE lines of a file; # starts a comment line, a value in double quotes may hold \\n and line breaks")
	f.StringVarP(&x.workdir, "workdir", "w", "", "directory inside to run in (default: the workspace)")
	f.DurationVar(&x.timeout, "timeout", 0, "end the command after this time, such as 90s (exit code 124)")
	f.DurationVar(&x.grace, "grace", 0, "time between SIGTERM and SIGKILL when it is ended (default 2s)")
	f.StringVar(&x.outputLimit, "output-limit", "", "keep the head and the tail of each output up to this size, such as 1MiB")
	f.BoolVar(&x.background, "background", false, "start it, print its id and return; see berth ps, logs, stdin, kill")
	f.BoolVar(&x.keep, "keep", false, "leave processes running that outlive the command, until the sandbox ends")
	f.BoolVar(&x.jsonOut, "json", false, "print one JSON object with exit code and outputs instead of passing them through")
	return cmd
}

// exec checks everything that can be checked before the sandbox is touched.
func (a *app) exec(cmd *cobra.Command, t *target, x *execFlags, argv []string) error {
	env, err := x.environment(a)
	if err != nil {
		return err
	}
	if err := x.check(cmd, a); err != nil {
		return err
	}
	ctx := cmd.Context()
	s, err := a.open(ctx, t)
	if err != nil {
		return err
	}
	defer s.Close()
	if x.background {
		return a.execBackground(ctx, s, x, argv, env)
	}
	return a.execForeground(ctx, s, x, argv, env)
}

// check refuses combinations and values that make no sense.
func (x *execFlags) check(cmd *cobra.Command, a *app) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("timeout") && (x.timeout <= 0 || x.timeout > maxTimeout):
		return &usageError{fmt.Errorf("--timeout %v: give a time above 0 and up to %v", x.timeout, maxTimeout)}
	case changed("grace") && (x.grace <= 0 || x.grace > time.Hour):
		return &usageError{fmt.Errorf("--grace %v: give a time above 0 and up to 1h", x.grace)}
	case x.tty && x.jsonOut:
		return &usageError{errors.New("--tty and --json exclude each other: a terminal's output is not separated")}
	case x.tty && x.outputLimit != "":
		return &usageError{errors.New("--tty and --output-limit exclude each other")}
	case x.background && changed("timeout"):
		return &usageError{errors.New("--background and --timeout exclude each other; end it with berth kill")}
	case x.tty && x.stdin && !x.background && !isTerminal(a.stdin):
		return &usageError{errors.New("-i with -t needs a terminal as standard input; leave -t out")}
	}
	if x.outputLimit != "" {
		n, err := config.ParseSize(x.outputLimit)
		if err != nil || n == 0 {
			return &usageError{fmt.Errorf("--output-limit %q: give a size above 0, such as 1MiB", x.outputLimit)}
		}
		x.limit = n
	}
	return nil
}

// environment collects -e and --env-file; the later wins, -e over the file.
func (x *execFlags) environment(a *app) ([]string, error) {
	var out []string
	if x.envFile != "" {
		lines, err := readEnvFile(x.envFile)
		if err != nil {
			return nil, err
		}
		out = lines
	}
	for _, kv := range x.env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			value = a.getenv(name)
			if value == "" {
				if _, set := os.LookupEnv(name); !set {
					return nil, &usageError{fmt.Errorf("-e %s: the variable is not set here; give %s=VALUE", name, name)}
				}
			}
		}
		if err := sandbox.ValidEnv(name, value); err != nil {
			return nil, &usageError{fmt.Errorf("-e: %w", err)}
		}
		out = append(out, name+"="+value)
	}
	return out, nil
}

// readEnvFile reads KEY=VALUE lines. A value in double quotes may span lines and
// holds the escapes \n \t \" \\ ; any other value is taken as it is.
func readEnvFile(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withHint(exitRefused, err, "--env-file names a file of this machine")
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSuffix(sc.Text(), "\r")
		if trimmed := strings.TrimSpace(text); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		first := line
		name, value, ok := strings.Cut(strings.TrimPrefix(text, "export "), "=")
		if strings.HasPrefix(value, `"`) {
			for !closedQuote(value) && sc.Scan() {
				line++
				value += "\n" + sc.Text()
			}
			if !closedQuote(value) {
				return nil, &usageError{fmt.Errorf("%s:%d: the double quote is not closed", path, first)}
			}
			value = unquote(value)
		}
		if !ok {
			return nil, &usageError{fmt.Errorf("%s:%d: no = in the line; write KEY=VALUE", path, first)}
		}
		if err := sandbox.ValidEnv(name, value); err != nil {
			return nil, &usageError{fmt.Errorf("%s:%d: %w", path, first, err)}
		}
		out = append(out, name+"="+value)
	}
	if err := sc.Err(); err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return out, nil
}

// closedQuote reports whether a value that starts with a double quote ends with
// one that is not escaped.
func closedQuote(v string) bool {
	if len(v) < 2 || !strings.HasSuffix(v, `"`) {
		return false
	}
	body := strings.TrimRight(v[1:len(v)-1], `\`)
	return (len(v)-2-len(body))%2 == 0
}

// unquote removes the quotes and the escapes.
func unquote(v string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(v[1 : len(v)-1])
}

// execBackground starts a background command and prints its id.
func (a *app) execBackground(ctx context.Context, s *owner.Handle, x *execFlags, argv, env []string) error {
	req := owner.StartRequest{
		Argv: argv, Env: env, Dir: x.workdir, Stdin: x.stdin, OutputLimit: x.limit,
		KeepDescendants: x.keep, Grace: x.grace,
	}
	if x.tty {
		size := terminalSize(a.stdout)
		req.TTY = &sandbox.TTYSize{Rows: size.Rows, Cols: size.Cols}
	}
	info, err := s.StartBackground(ctx, req)
	if err != nil {
		return err
	}
	if x.jsonOut {
		return writeJSON(a.stdout, info)
	}
	_, err = fmt.Fprintln(a.stdout, info.ID)
	return err
}

// procSpec is the command as the owner is asked to run it.
func (x *execFlags) procSpec(a *app, argv, env []string) proc.Spec {
	s := proc.Spec{Argv: argv, Env: env, Dir: x.workdir, Stdin: x.stdin, KeepDescendants: x.keep, Grace: x.grace}
	if x.tty {
		size := terminalSize(a.stdout)
		s.TTY = &size
	}
	return s
}
