//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// defaultTerm is TERM on a terminal where the environment has none.
const defaultTerm = "xterm-256color"

func badSpec(format string, args ...any) error {
	return &proc.StartError{Reason: proc.BadSpec, What: fmt.Sprintf(format, args...)}
}

// complete checks a specification and returns it with everything a reaper needs:
// the environment without duplicates, with the marker, the tag and a TERM.
func complete(spec proc.Spec, tag string) (proc.Spec, error) {
	switch {
	case len(spec.Argv) == 0 || spec.Argv[0] == "":
		return spec, badSpec("no command is named")
	case len(spec.Argv) > wire.MaxArgs:
		return spec, badSpec("%d arguments, at most %d are allowed", len(spec.Argv), wire.MaxArgs)
	case len(spec.Env) > wire.MaxArgs-3:
		return spec, badSpec("%d environment variables, at most %d are allowed", len(spec.Env), wire.MaxArgs-3)
	case spec.Marker != "" && !validMarker(spec.Marker):
		return spec, badSpec("marker %q is not 32 hexadecimal digits", wire.Printable(spec.Marker, 64))
	case strings.IndexByte(spec.Dir, 0) >= 0:
		return spec, badSpec("NUL byte in the working directory")
	}
	size := 0
	for i, a := range spec.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return spec, badSpec("NUL byte in argument %d", i)
		}
		if len(a) > wire.MaxFrame {
			return spec, badSpec("argument %d has %d bytes, at most %d are allowed", i, len(a), wire.MaxFrame)
		}
		size += len(a) + 16
	}
	env, err := completeEnv(spec, tag)
	if err != nil {
		return spec, err
	}
	for _, v := range env {
		size += len(v) + 16
	}
	if size > maxSpec-2*wire.MaxPath {
		return spec, badSpec("arguments and environment of %d bytes, at most %d are allowed", size, maxSpec-2*wire.MaxPath)
	}
	spec.Env = env
	if spec.Grace == 0 {
		spec.Grace = proc.DefaultGrace
	}
	return spec, nil
}

// completeEnv keeps the last variable of every name, byte for byte, in the place
// of the first.
func completeEnv(spec proc.Spec, tag string) ([]string, error) {
	env := make([]string, 0, len(spec.Env)+3)
	place := make(map[string]int, len(spec.Env)+3)
	set := func(v string) error {
		key, _, ok := strings.Cut(v, "=")
		switch {
		case !ok || key == "":
			return badSpec("environment variable %q is not KEY=VALUE", wire.Printable(v, 64))
		case strings.IndexByte(v, 0) >= 0:
			return badSpec("NUL byte in environment variable %q", wire.Printable(key, 64))
		case len(v) > wire.MaxFrame:
			return badSpec("environment variable %q has %d bytes, at most %d are allowed",
				wire.Printable(key, 64), len(v), wire.MaxFrame)
		}
		if i, dup := place[key]; dup {
			env[i] = v
			return nil
		}
		place[key] = len(env)
		env = append(env, v)
		return nil
	}
	for _, v := range spec.Env {
		if err := set(v); err != nil {
			return nil, err
		}
	}
	if _, ok := place["TERM"]; !ok && spec.TTY != nil {
		_ = set("TERM=" + defaultTerm) // cannot be refused
	}
	if spec.Marker != "" {
		_ = set(proc.MarkerVar + "=" + spec.Marker)
	}
	if tag != "" {
		_ = set(TagVar + "=" + tag)
	}
	return env, nil
}

// validMarker reports whether s is a process marker: 32 hexadecimal digits.
func validMarker(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range []byte(s) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// openDir opens the working directory of a command.
func (r *Runner) openDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := r.resolveDir(ctx, dir)
	if err == nil {
		return f, nil
	}
	e := &proc.StartError{Reason: proc.NotDirectory, What: dir, Err: err}
	switch {
	case errors.Is(err, fsbridge.ErrOutsideRoot):
		e.Reason = proc.OutsideDir
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = proc.NoDirectory
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		e.Reason = proc.LimitReached
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Reason = proc.Internal
	}
	return nil, e
}

// plainDir resolves a working directory without a table of mounts: the name as it
// is, relative to the working directory of this process.
func plainDir(_ context.Context, dir string) (*os.File, error) {
	if dir == "" {
		dir = "."
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
