package fsbridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestErrorText: one line, with operation, path and reason, whatever the path holds.
func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&PathError{Op: "read", Path: "notes.txt", Err: ErrOutsideRoot}, "read notes.txt: outside the permitted directories"},
		{&PathError{Op: "read", Path: "a\nb", Err: ErrReadOnly}, `read a\x0ab: read-only`},
		{&PathError{Op: "write", Path: "", Err: ErrInvalidPath}, `write "": invalid path (outside the permitted directories)`},
		{&ConflictError{Current: "c", Expected: "e"}, "changed by someone else: expected sha256 e, found sha256 c"},
		{&ConflictError{Current: "c"}, "changed by someone else: expected no file, found sha256 c"},
		{&ConflictError{Expected: "e"}, "changed by someone else: expected sha256 e, found no regular file"},
		{&ConflictError{}, "changed by someone else: expected no file, found something that is not a regular file"},
		{&LimitError{What: "file size", Limit: 10, Actual: 11}, "file size 11 is larger than the limit of 10"},
		{&LimitError{What: "matches", Limit: 10}, "matches is larger than the limit of 10"},
		{&UnsupportedError{Capability: CapWatch}, `this environment's bridge does not support "watch"`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%q has several lines", c.err)
		}
	}
}

// TestErrorMatching: typed errors match their sentinel and no other one.
func TestErrorMatching(t *testing.T) {
	sentinels := map[string]error{
		"outside": ErrOutsideRoot, "read-only": ErrReadOnly, "not regular": ErrNotRegular, "too large": ErrTooLarge,
		"conflict": ErrConflict, "unsupported": ErrUnsupported, "not current": ErrNotCurrent, "unknown": ErrOutcomeUnknown,
		"unavailable": ErrUnavailable, "invalid path": ErrInvalidPath, "cross device": ErrCrossDevice, "invalid": ErrInvalid,
		"missing": fs.ErrNotExist, "exists": fs.ErrExist, "permission": fs.ErrPermission,
	}
	for _, c := range []struct {
		err     error
		matches []string
	}{
		{&ConflictError{}, []string{"conflict"}},
		{&LimitError{}, []string{"too large"}},
		{&UnsupportedError{}, []string{"unsupported"}},
		{ErrInvalidPath, []string{"invalid path", "outside"}},
		{ErrOutsideRoot, []string{"outside"}},
		{ErrReadOnly, []string{"read-only"}},
		{ErrNotCurrent, []string{"not current"}},
		{ErrOutcomeUnknown, []string{"unknown"}},
		{ErrUnavailable, []string{"unavailable"}},
		{syscall.ENOENT, []string{"missing"}},
	} {
		for _, err := range []error{c.err, &PathError{Op: "op", Path: "p", Err: c.err}, fmt.Errorf("again: %w", &PathError{Err: c.err})} {
			for name, s := range sentinels {
				want := false
				for _, m := range c.matches {
					want = want || m == name
				}
				if got := errors.Is(err, s); got != want {
					t.Errorf("%T %v: matches %q: %t, want %t", c.err, c.err, name, got, want)
				}
			}
		}
	}
	var pe *PathError
	err := fmt.Errorf("wrapped: %w", &PathError{Op: "read", Path: "p", Err: context.Canceled, Hint: "h"})
	if !errors.As(err, &pe) || pe.Path != "p" || pe.Hint != "h" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var errno syscall.Errno
	if !errors.As(&PathError{Err: syscall.ENOSPC}, &errno) || errno != syscall.ENOSPC {
		t.Error("the errno is lost")
	}
}
