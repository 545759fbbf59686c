package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// cross sends an error over the wire.
func cross(t *testing.T, err error) error {
	t.Helper()
	d := wire.NewDecoder(wire.AppendError(nil, err))
	got := d.Error()
	if bad := d.Finish(); bad != nil {
		t.Fatalf("%v: %v", err, bad)
	}
	return got
}

func sentinels() []error {
	return []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fsbridge.ErrOutsideRoot, fsbridge.ErrReadOnly,
		fsbridge.ErrNotRegular, fsbridge.ErrTooLarge, fsbridge.ErrConflict, fsbridge.ErrUnsupported,
		fsbridge.ErrNotCurrent, fsbridge.ErrOutcomeUnknown, fsbridge.ErrUnavailable, fsbridge.ErrInvalidPath,
		fsbridge.ErrCrossDevice, fsbridge.ErrInvalid, path.ErrBadPattern, os.ErrProcessDone, fs.ErrClosed,
		context.Canceled, context.DeadlineExceeded,
		syscall.ENOSPC, syscall.ENOTDIR, syscall.EISDIR, syscall.ENOENT, syscall.EEXIST, syscall.EACCES, syscall.EPERM,
		syscall.EROFS, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENOTEMPTY, syscall.EXDEV, syscall.EMFILE,
		syscall.EDQUOT, syscall.EIO, syscall.EINVAL, syscall.E2BIG, syscall.ETXTBSY,
	}
}

// An error matches on this side exactly what it matched on the other, alone and
// wrapped, and says the same.
func TestErrorsMatchAcross(t *testing.T) {
	wraps := map[string]func(error) error{
		"bare":    func(err error) error { return err },
		"wrapped": func(err error) error { return fmt.Errorf("context: %w", err) },
		"path": func(err error) error {
			return &fsbridge.PathError{Op: "read", Path: "a\xffb", Err: err, Hint: "do this"}
		},
		"fs path":    func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} },
		"two causes": func(err error) error { return fmt.Errorf("%w (%w)", err, syscall.EBADF) },
	}
	for name, wrap := range wraps {
		for _, one := range sentinels() {
			err := wrap(one)
			got := cross(t, err)
			if got.Error() != err.Error() && !strings.Contains(err.Error(), `\x`) {
				t.Errorf("%s: %q arrived as %q", name, err, got)
			}
			for _, s := range sentinels() {
				if errors.Is(got, s) != errors.Is(err, s) {
					t.Errorf("%s %v: matches %v: %t, want %t", name, one, s, errors.Is(got, s), errors.Is(err, s))
				}
			}
			var was, is syscall.Errno
			if errors.As(err, &was) != errors.As(got, &is) || was != is {
				t.Errorf("%s %v: errno %v, want %v", name, one, is, was)
			}
		}
	}
}

func TestTypedErrorsCross(t *testing.T) {
	digest := fsbridge.Digest(strings.Repeat("0123456789abcdef", 4))
	path := func(err error) error {
		return &fsbridge.PathError{Op: "write", Path: "f", Err: err, Hint: "read it again"}
	}
	var (
		pe          *fsbridge.PathError
		conflict    *fsbridge.ConflictError
		limit       *fsbridge.LimitError
		unsupported *fsbridge.UnsupportedError
		start       *proc.StartError
		remote      *wire.RemoteError
	)
	for _, c := range []fsbridge.ConflictError{{Current: digest, Expected: digest}, {Current: digest}, {Expected: digest}} {
		err := cross(t, path(&c))
		if !errors.As(err, &conflict) || *conflict != c || !errors.Is(err, fsbridge.ErrConflict) {
			t.Errorf("%+v arrived as %v", c, err)
		}
		if !errors.As(err, &pe) || pe.Op != "write" || pe.Path != "f" || pe.Hint != "read it again" || err.Error() != path(&c).Error() {
			t.Errorf("%+v arrived as %+v", c, pe)
		}
	}
	l := fsbridge.LimitError{What: "file size", Limit: 1 << 40, Actual: 1 << 50}
	if err := cross(t, path(&l)); !errors.As(err, &limit) || *limit != l || !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Errorf("%+v arrived as %v", l, err)
	}
	u := fsbridge.UnsupportedError{Capability: fsbridge.CapWatch}
	if err := cross(t, &u); !errors.As(err, &unsupported) || *unsupported != u || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%+v arrived as %v", u, err)
	}
	for _, reason := range []proc.StartReason{
		proc.NoCommand, proc.NotExecutable, proc.NoDirectory, proc.NotDirectory, proc.OutsideDir, proc.LimitReached, proc.BadSpec, proc.Internal,
	} {
		for _, cause := range []error{nil, syscall.ENOENT, fmt.Errorf("exec: %w", syscall.ENOEXEC), errors.New("a text")} {
			s := &proc.StartError{Reason: reason, What: "a\x00\xffb", Err: cause}
			err := cross(t, s)
			if !errors.As(err, &start) || start.Reason != reason || start.What != s.What || err.Error() != s.Error() {
				t.Errorf("%v arrived as %v", s, err)
			}
			if cause != nil && errors.Is(s, syscall.ENOENT) != errors.Is(err, syscall.ENOENT) {
				t.Errorf("%v lost its errno", s)
			}
		}
	}
	if err := cross(t, fmt.Errorf("x: %w", &wire.RemoteError{Code: "busy", Text: "taken", Hint: "wait"})); !errors.As(err, &remote) ||
		remote.Code != "busy" || remote.Hint != "wait" || err.Error() != "x: taken" {
		t.Errorf("remote error arrived as %v", err)
	}
}

// An error is cut to fit and never fails to be sent; what arrives is fit to print.
func TestErrorsAreBounded(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for name, err := range map[string]error{
		"text":    errors.New(huge),
		"path":    &fsbridge.PathError{Op: huge, Path: huge, Err: errors.New(huge), Hint: huge},
		"limit":   &fsbridge.LimitError{What: huge, Limit: -5, Actual: -1},
		"start":   &proc.StartError{Reason: "of the future", What: huge, Err: errors.New(huge)},
		"code":    &wire.RemoteError{Code: huge, Text: huge, Hint: huge},
		"missing": &fsbridge.UnsupportedError{Capability: fsbridge.Capability(huge)},
		"digests": &fsbridge.ConflictError{Expected: fsbridge.Digest(huge)},
	} {
		if b := wire.AppendError(nil, err); len(b) > 20_000 {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		if got := cross(t, err); len(got.Error()) > 20_000 {
			t.Errorf("%s: %d bytes of text", name, len(got.Error()))
		}
	}
	if got := cross(t, errors.New("\x1b[2J\nevil\x00")).Error(); got != `\x1b[2J evil\x00` {
		t.Errorf("text %q", got)
	}
	if got := cross(t, errors.New("")).Error(); got == "" {
		t.Error("an error without a text")
	}
}

func TestMalformedErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":           {},
		"code 99":           {1, 99, 0, 0, 0, 0, 0, 0},
		"100 codes":         append([]byte{100}, make([]byte, 100)...),
		"errno 100000":      {0, 0xa0, 0x8d, 0x06, 0, 0, 0, 0, 0},
		"detail 9":          {0, 0, 0, 0, 0, 9, 0},
		"reason 200":        {0, 0, 0, 0, 0, 4, 200, 0, 0},
		"digest of words":   {0, 0, 0, 0, 0, 1, 4, 'w', 'o', 'r', 'd', 0, 0},
		"text of 1 MiB":     {0, 0, 0, 0, 0, 0, 0x80, 0x80, 0x40},
		"cut before detail": {0, 0, 0, 0, 0},
	} {
		d := wire.NewDecoder(b)
		err := d.Error()
		if bad := d.Finish(); !errors.Is(bad, wire.ErrProtocol) || !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %v, %v", name, err, bad)
		}
	}
}
