package bridgetest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// inPlace empties the file and writes it anew.
type inPlace struct{ base }

func (b inPlace) WriteFile(ctx context.Context, p string, data []byte) error {
	if i, err := b.Stat(ctx, p); err != nil || !i.IsRegular() {
		return b.Bridge.WriteFile(ctx, p, data)
	}
	if err := os.WriteFile(b.host(p), data, 0o644); err != nil {
		return &fsbridge.PathError{Op: "write", Path: p, Err: err}
	}
	return nil
}

// replacesLinks renames its temporary over the link.
type replacesLinks struct{ base }

func (b replacesLinks) WriteFile(ctx context.Context, p string, data []byte) error {
	if i, err := b.Lstat(ctx, p); err == nil && i.Type == fsbridge.TypeSymlink {
		if err := b.Remove(ctx, p, fsbridge.RemoveOptions{}); err != nil {
			return err
		}
	}
	return b.Bridge.WriteFile(ctx, p, data)
}

// escapes writes by name.
type escapes struct{ base }

func (b escapes) WriteFile(ctx context.Context, p string, data []byte) error {
	err := b.Bridge.WriteFile(ctx, p, data)
	if errors.Is(err, fsbridge.ErrOutsideRoot) && fsbridge.ValidPath(p) == nil {
		_ = os.WriteFile(b.host(p), data, 0o644)
	}
	return err
}

// checkedWrites resolves the directory first and writes by name afterwards.
type checkedWrites struct{ base }

func (b checkedWrites) WriteFile(_ context.Context, p string, data []byte) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(b.host(p)))
	if err == nil && dir != b.ws && !strings.HasPrefix(dir, b.ws+"/") {
		err = fsbridge.ErrOutsideRoot
	}
	if err == nil {
		err = os.WriteFile(b.host(p), data, 0o644)
	}
	if err != nil {
		return &fsbridge.PathError{Op: "write", Path: p, Err: err}
	}
	return nil
}

// private makes files that only the owner may read, as temporary files are.
type private struct{ base }

func (b private) WriteFile(ctx context.Context, p string, data []byte) error {
	_, err := b.WriteStream(ctx, p, bytes.NewReader(data), fsbridge.WriteOptions{Mode: 0o600})
	return err
}

// forgets loses the mode of the file it replaces.
type forgets struct{ base }

func (b forgets) WriteFile(ctx context.Context, p string, data []byte) error {
	_, err := b.WriteStream(ctx, p, bytes.NewReader(data), fsbridge.WriteOptions{Mode: 0o644})
	return err
}

// seizes makes every file it replaces its own.
type seizes struct{ base }

func (b seizes) WriteFile(ctx context.Context, p string, data []byte) error {
	err := b.Bridge.WriteFile(ctx, p, data)
	if err == nil {
		_ = os.Chown(b.host(p), os.Getuid(), os.Getgid())
	}
	return err
}

// decimal takes the digits of a mode for a decimal number.
type decimal struct{ base }

func (b decimal) Chmod(ctx context.Context, p string, m fsbridge.Mode) error {
	if m == 0o644 {
		m = 644 & 0o777
	}
	return b.Bridge.Chmod(ctx, p, m)
}

// litters leaves its temporary when the source fails.
type litters struct{ base }

func (b litters) WriteStream(ctx context.Context, p string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	res, err := b.Bridge.WriteStream(ctx, p, r, o)
	if err != nil && fsbridge.ValidPath(p) == nil {
		_ = os.WriteFile(filepath.Join(filepath.Dir(b.host(p)), ".berth-0000000000000000-1"), nil, 0o600)
	}
	return res, err
}

// keeps writes what came before the source failed.
type keeps struct{ base }

func (b keeps) WriteStream(ctx context.Context, p string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	data, errRead := io.ReadAll(r)
	res, err := b.Bridge.WriteStream(ctx, p, bytes.NewReader(data), o)
	if err == nil && errRead != nil {
		err = &fsbridge.PathError{Op: "write", Path: p, Err: errRead}
	}
	return res, err
}

// unconditional ignores preconditions.
type unconditional struct{ base }

func (b unconditional) WriteStream(ctx context.Context, p string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	o.If = fsbridge.Precondition{}
	return b.Bridge.WriteStream(ctx, p, r, o)
}

// tooEarly checks the precondition, and lets others in before it writes.
type tooEarly struct{ base }

func (b tooEarly) WriteStream(ctx context.Context, p string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if o.If.Hash != "" {
		h, err := b.HashFile(ctx, p)
		if err != nil {
			return fsbridge.WriteResult{}, err
		}
		if h.Digest != o.If.Hash {
			return fsbridge.WriteResult{}, &fsbridge.PathError{Op: "write", Path: p, Err: &fsbridge.ConflictError{Current: h.Digest, Expected: o.If.Hash}}
		}
		o.If = fsbridge.Precondition{}
	}
	return b.Bridge.WriteStream(ctx, p, r, o)
}

// overwrites takes an exclusive creation for a write.
type overwrites struct{ base }

func (b overwrites) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	return b.WriteFile(ctx, p, data)
}

// looksFirst looks whether the name is free, and writes afterwards.
type looksFirst struct{ base }

func (b looksFirst) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	if _, err := b.Lstat(ctx, p); err == nil {
		return &fsbridge.PathError{Op: "create", Path: p, Err: fs.ErrExist}
	}
	return b.WriteFile(ctx, p, data)
}

// inSteps makes the new name first and fills it afterwards.
type inSteps struct{ base }

func (b inSteps) CreateFileExclusive(ctx context.Context, p string, data []byte) error {
	if err := b.Bridge.CreateFileExclusive(ctx, p, nil); err != nil {
		return err
	}
	return b.AppendFile(ctx, p, data)
}

// rewrites appends by reading and writing the whole file.
type rewrites struct{ base }

func (b rewrites) AppendFile(ctx context.Context, p string, data []byte) error {
	old, err := b.ReadFile(ctx, p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return b.WriteFile(ctx, p, append(old, data...))
}

// through removes what a link points to.
type through struct{ base }

func (b through) Remove(ctx context.Context, p string, o fsbridge.RemoveOptions) error {
	if target, err := os.Readlink(b.host(p)); err == nil && !o.Recursive {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(b.host(p)), target)
		}
		_ = os.Remove(target + "/s")
	}
	return b.Bridge.Remove(ctx, p, o)
}

// dashes takes names that begin with a dash for options.
type dashes struct{ base }

func (b dashes) Remove(ctx context.Context, p string, o fsbridge.RemoveOptions) error {
	if strings.HasPrefix(p, "-") {
		return nil
	}
	return b.Bridge.Remove(ctx, p, o)
}

// replaces ignores NoReplace.
type replaces struct{ base }

func (b replaces) Rename(ctx context.Context, from, to string, o fsbridge.RenameOptions) error {
	o.NoReplace = false
	return b.Bridge.Rename(ctx, from, to, o)
}

// copiesThenRemoves moves by copying and removing by name.
type copiesThenRemoves struct{ base }

func (b copiesThenRemoves) Rename(_ context.Context, from, to string, _ fsbridge.RenameOptions) error {
	data, err := os.ReadFile(b.host(from))
	if err == nil {
		err = os.WriteFile(b.host(to), data, 0o644)
	}
	if err == nil {
		err = os.Remove(b.host(from))
	}
	if err != nil {
		return &fsbridge.PathError{Op: "rename", Path: from, Err: err}
	}
	return nil
}

// anyTarget makes every link it is asked for.
type anyTarget struct{ base }

func (b anyTarget) Symlink(ctx context.Context, target, p string, o fsbridge.SymlinkOptions) error {
	err := b.Bridge.Symlink(ctx, target, p, o)
	if errors.Is(err, fsbridge.ErrOutsideRoot) && fsbridge.ValidPath(p) == nil {
		return os.Symlink(target, b.host(p))
	}
	return err
}

// materialises copies what links point to.
type materialises struct{ base }

func (b materialises) Copy(ctx context.Context, from, to string, o fsbridge.CopyOptions) error {
	err := b.Bridge.Copy(ctx, from, to, o)
	if errors.Is(err, fsbridge.ErrOutsideRoot) && strings.HasPrefix(from, "bad") {
		_ = os.MkdirAll(b.host(to), 0o755)
		data, _ := os.ReadFile(b.host(from) + "/out")
		_ = os.WriteFile(b.host(to)+"/out", data, 0o644)
	}
	return err
}

// leaks leaves a goroutine behind.
type leaks struct{ base }

func (b leaks) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	go func() { select {} }()
	return b.Bridge.Stat(ctx, p)
}

// touches changes the time of a file outside.
type touches struct{ base }

func (b touches) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	now := time.Now()
	_ = os.Chtimes(b.ws+"/../out/s", now, now)
	return b.Bridge.Stat(ctx, p)
}
