package remoteworkspace_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/helpertest"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/remoteworkspace"
)

func TestMain(m *testing.M) {
	os.Exit(helpertest.Main(m, func() error { return goleak.Find() }))
}

// full are the operations that the package uses where a bridge has them.
type full interface {
	fsbridge.Bridge
	fsbridge.Declarer
	fsbridge.SourceReader
	fsbridge.DirReader
	fsbridge.Globber
	fsbridge.Hasher
	fsbridge.StreamWriter
	fsbridge.ExclusiveCreator
	fsbridge.Mounter
}

// place is a workspace and how it is reached.
type place struct {
	// root is where its files lie on this machine, for the test to look at.
	root string
	open fsbridge.Factory
}

// places runs a test with the files served by each kind of bridge.
func places(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		test(t, place{root: root, open: localFactory(root)})
	})
	t.Run("bubblewrap", func(t *testing.T) {
		t.Parallel()
		test(t, bubblewrapPlace(t))
	})
}

func localFactory(root string) fsbridge.Factory {
	return func(_ context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		return local.New(local.Options{Mounts: fsbridge.MountTable{{Path: root, Kind: fsbridge.MountWorkspace}}, Assert: assert})
	}
}

// openLocal is the LocalFunc of the tests.
func openLocal(ctx context.Context, dir string, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
	return localFactory(dir)(ctx, assert)
}

func bubblewrapPlace(t *testing.T) place {
	t.Helper()
	p := sandboxtest.New(t, sandboxtest.Bubblewrap)
	return place{root: p.Root, open: p.Sandbox(t).Bridge}
}

// sftpPlace is served by OpenSSH's SFTP server alone.
func sftpPlace(t *testing.T) place {
	t.Helper()
	root, open, _ := sandboxtest.SFTP(t)
	return place{root: root, open: open}
}

// write puts a file into the workspace behind the bridge's back.
func (p place) write(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(p.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (p place) content(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fixture is a bound workspace with everything around it.
type fixture struct {
	place
	dir      string // as the Gateway names it; it does not exist there
	registry *remoteworkspace.Registry
	w        *remoteworkspace.Workspaces
	docs     *remoteworkspace.DocumentService
	release  func()
	opened   atomic.Int64 // bridges that were made
	locals   atomic.Int64 // local bridges that were made
}

// bind registers the place, as wrap makes it, and makes the methods.
func bind(t testing.TB, p place, wrap func(fsbridge.Bridge) fsbridge.Bridge, o remoteworkspace.Options, d remoteworkspace.DocumentOptions) *fixture {
	t.Helper()
	f := &fixture{place: p, dir: filepath.Join(t.TempDir(), "bound"), registry: remoteworkspace.NewRegistry(remoteworkspace.RegistryOptions{})}
	o.Registry = f.registry
	o.Local = func(ctx context.Context, dir string, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		f.locals.Add(1)
		return openLocal(ctx, dir, assert)
	}
	var err error
	if f.w, err = remoteworkspace.New(o); err != nil {
		t.Fatal(err)
	}
	if f.docs, err = f.w.Documents(d); err != nil {
		t.Fatal(err)
	}
	if err := f.registry.Declare(f.dir); err != nil {
		t.Fatal(err)
	}
	f.release, err = f.registry.Register(f.dir, remoteworkspace.Access{Bridge: func(ctx context.Context, assert fsbridge.AssertFunc) (fsbridge.Bridge, error) {
		f.opened.Add(1)
		b, err := p.open(ctx, assert)
		if err != nil || wrap == nil {
			return b, err
		}
		return wrap(b), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// simple is bind with nothing special.
func simple(t testing.TB, p place) *fixture {
	return bind(t, p, nil, remoteworkspace.Options{}, remoteworkspace.DocumentOptions{})
}

// core is a bridge with nothing but the three operations.
func core(b fsbridge.Bridge) fsbridge.Bridge {
	return struct {
		fsbridge.Bridge
		io.Closer
	}{b, closing{b}}
}

type closing struct{ b fsbridge.Bridge }

func (c closing) Close() error {
	if x, ok := c.b.(io.Closer); ok {
		return x.Close()
	}
	return nil
}

// faulty is a bridge whose operations fail, or lie, as a test says.
type faulty struct {
	full
	closing
	denied []fsbridge.Capability
	// before runs first; its error is returned instead of doing anything.
	before func(op, path string) error
	// after sees the error of an operation that was done, and gives another.
	after func(op, path string, err error) error
	// source changes what a pinned read tells.
	source func(*fsbridge.SourcedFile)
}

// with wraps bridges as f says.
func with(f faulty) func(fsbridge.Bridge) fsbridge.Bridge {
	return func(b fsbridge.Bridge) fsbridge.Bridge {
		g := f
		g.full, g.closing = b.(full), closing{b}
		return &g
	}
}

func (f *faulty) Declares(c fsbridge.Capability) bool {
	return !slices.Contains(f.denied, c) && f.full.Declares(c)
}

func (f *faulty) do(op, path string, fn func() error) error {
	if f.before != nil {
		if err := f.before(op, path); err != nil {
			return &fsbridge.PathError{Op: op, Path: path, Err: err}
		}
	}
	err := fn()
	if f.after != nil {
		if err := f.after(op, path, err); err != nil {
			return &fsbridge.PathError{Op: op, Path: path, Err: err}
		}
		return nil
	}
	return err
}

func (f *faulty) Stat(ctx context.Context, path string) (i fsbridge.FileInfo, err error) {
	err = f.do("stat", path, func() error { i, err = f.full.Stat(ctx, path); return err })
	return i, err
}

func (f *faulty) ReadFile(ctx context.Context, path string) (data []byte, err error) {
	err = f.do("read", path, func() error { data, err = f.full.ReadFile(ctx, path); return err })
	return data, err
}

func (f *faulty) WriteFile(ctx context.Context, path string, data []byte) error {
	return f.do("write", path, func() error { return f.full.WriteFile(ctx, path, data) })
}

func (f *faulty) WriteStream(ctx context.Context, path string, r io.Reader, o fsbridge.WriteOptions) (w fsbridge.WriteResult, err error) {
	err = f.do("write", path, func() error { w, err = f.full.WriteStream(ctx, path, r, o); return err })
	return w, err
}

func (f *faulty) ReadFileWithSource(ctx context.Context, path string) (s fsbridge.SourcedFile, err error) {
	err = f.do("source", path, func() error { s, err = f.full.ReadFileWithSource(ctx, path); return err })
	if err == nil && f.source != nil {
		f.source(&s)
	}
	return s, err
}

func (f *faulty) ReadDirectory(ctx context.Context, path string) (list []fsbridge.DirEntry, err error) {
	err = f.do("list", path, func() error { list, err = f.full.ReadDirectory(ctx, path); return err })
	return list, err
}

// wantErr demands an error that matches all of the sentinels.
func wantErr(t testing.TB, what string, err error, sentinels ...error) {
	t.Helper()
	for _, s := range sentinels {
		if !errors.Is(err, s) {
			t.Errorf("%s: error %v, want one that is %q", what, err, s)
		}
	}
}
