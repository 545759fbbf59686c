package helperbin

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound is matched by every [*NotFoundError].
	ErrNotFound = errors.New("guest helper not found")
	// ErrUnusable is matched by every [*UnusableError].
	ErrUnusable = errors.New("guest helper cannot be used")
)

// Place is one place that was searched without success.
type Place struct {
	Where string // a path, or a description such as "inside this program"
	Why   string // what was wrong with it
}

// NotFoundError says that no place has a helper for the target. It matches [ErrNotFound].
type NotFoundError struct {
	GOOS, GOARCH string
	Looked       []Place // every place, in the order of the search
}

// Error lists the places and the remedy.
func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no guest helper (%s) for %s/%s; looked at:", Name, e.GOOS, e.GOARCH)
	for _, p := range e.Looked {
		fmt.Fprintf(&b, "\n  %s: %s", p.Where, p.Why)
	}
	fmt.Fprintf(&b, "\nrun `make build` and use bin/berth, which has it beside it, install a release build, or set %s to its path", EnvPath)
	return b.String()
}

// Is reports whether target is [ErrNotFound].
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// UnusableError says that the helper at a place exists, or was named, and cannot be used. The
// search does not go on behind it. It matches [ErrUnusable] and whatever Err matches, for example
// fs.ErrNotExist or fs.ErrPermission.
type UnusableError struct {
	Path   string
	Source Source
	Err    error
}

// Error names the file, the reason and the remedy.
func (e *UnusableError) Error() string {
	text := fmt.Sprintf("the guest helper %s cannot be used: %v", e.Path, e.Err)
	switch e.Source {
	case SourceEnv:
		return text + fmt.Sprintf("; correct the environment variable %s, which names it, or unset it", EnvPath)
	case SourceEmbedded:
		return text + "; it was just written to the cache directory: choose one on a file system that allows execution, with XDG_CACHE_HOME"
	default:
		return text + "; run `make build` to replace it"
	}
}

// Unwrap returns the reason.
func (e *UnusableError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrUnusable].
func (e *UnusableError) Is(target error) bool { return target == ErrUnusable }
