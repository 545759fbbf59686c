package guestbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// Size of a terminal that names none, in characters.
const (
	defaultRows = 24
	defaultCols = 80
)

// check completes a command, or says what is wrong with it. Nothing has been sent
// then.
func check(cmd sandbox.Command, workdir string) (sandbox.Command, error) {
	bad := func(format string, args ...any) (sandbox.Command, error) {
		return sandbox.Command{}, &sandbox.StartError{Reason: proc.BadSpec, What: fmt.Sprintf(format, args...)}
	}
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return bad("it names no program")
	}
	for i, a := range cmd.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return bad("argument %d has a NUL byte", i)
		}
	}
	cmd.Argv = slices.Clone(cmd.Argv)
	if cmd.Dir == "" {
		cmd.Dir = workdir
	}
	if err := fsbridge.ValidPath(cmd.Dir); err != nil {
		return bad("working directory: %v", err)
	}
	if cmd.Dir == "~" || strings.HasPrefix(cmd.Dir, "~/") {
		return bad("working directory %q: \"~\" is not expanded, write the path", cmd.Dir)
	}
	if cmd.TTY != nil {
		size := *cmd.TTY
		if size.Rows == 0 {
			size.Rows = defaultRows
		}
		if size.Cols == 0 {
			size.Cols = defaultCols
		}
		cmd.TTY = &size
	}
	if cmd.Grace <= 0 {
		cmd.Grace = sandbox.DefaultGrace
	}
	return cmd, nil
}

// environment puts the layers on top of each other and checks the result. The
// marker of custody passes; a variable of that name that is no marker does not.
func (b *Box) environment(env sandbox.Env, tty bool) (sandbox.Env, error) {
	all := b.opts.Env.Clone()
	if tty {
		all["TERM"] = "xterm-256color"
	}
	maps.Copy(all, b.opts.ConfigEnv)
	maps.Copy(all, env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == sandbox.MarkerVar {
			if !isMarker(env[name]) {
				return nil, &sandbox.Problem{
					Field: "env", What: fmt.Sprintf("variable %q", name), Rule: "it is kept for the process marker",
					Remedy: "build the environment with PrepareProcessCleanup", Err: sandbox.ErrRefused,
				}
			}
			continue
		}
		if err := sandbox.ValidEnv(name, env[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// isMarker reports whether s is 32 lower-case hexadecimal digits.
func isMarker(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// words lists an environment as KEY=VALUE, sorted.
func words(env sandbox.Env) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// errLaunched is why an exec spec is not launched again.
var errLaunched = errors.New("this exec spec was launched before; build a new one")
