package aferofs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"testing"

	"github.com/spf13/afero"
	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/aferofs"
	"github.com/workberth/workberth/fsbridge/bridgetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memDeclared is what a bridge over a file system in memory declares.
func memDeclared() []fsbridge.Capability {
	return without(fsbridge.CapReadFileWithSource, fsbridge.CapStreamDirectory, fsbridge.CapWatch, fsbridge.CapReadLink, fsbridge.CapSymlink)
}

// without is every capability except these.
func without(missing ...fsbridge.Capability) []fsbridge.Capability {
	out := []fsbridge.Capability{}
next:
	for _, c := range fsbridge.AllCapabilities() {
		for _, m := range missing {
			if c == m {
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// aferoOracle looks at a file system in memory without a bridge.
type aferoOracle struct{ fs afero.Fs }

var _ bridgetest.Oracle = aferoOracle{}

func (o aferoOracle) Make(p string, n bridgetest.Node) error {
	if n.HardLink != "" || n.Size > 1<<30 {
		return fmt.Errorf("in memory: %w", errors.ErrUnsupported)
	}
	if err := o.fs.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(n.Mode)
	switch n.Type {
	case fsbridge.TypeDir:
		if mode == 0 {
			mode = 0o755
		}
		if err := o.fs.MkdirAll(p, mode); err != nil {
			return err
		}
	case fsbridge.TypeRegular:
		if mode == 0 {
			mode = 0o644
		}
		data := n.Data
		if n.Size > int64(len(data)) {
			data = append(data, make([]byte, n.Size-int64(len(data)))...)
		}
		if err := afero.WriteFile(o.fs, p, data, mode); err != nil {
			return err
		}
	default:
		return fmt.Errorf("in memory there is no %s: %w", n.Type, errors.ErrUnsupported)
	}
	if err := o.fs.Chmod(p, mode); err != nil {
		return err
	}
	if !n.ModTime.IsZero() {
		return o.fs.Chtimes(p, n.ModTime, n.ModTime)
	}
	return nil
}

func (o aferoOracle) Look(p string) (bridgetest.Node, error) {
	i, err := o.fs.Stat(p)
	if err != nil {
		return bridgetest.Node{}, err
	}
	n := bridgetest.Node{Type: fsbridge.TypeRegular, Mode: fsbridge.Mode(i.Mode().Perm()), Size: i.Size(), ModTime: i.ModTime()}
	if i.Mode()&fs.ModeSetuid != 0 {
		n.Mode |= fsbridge.ModeSetUID
	}
	if i.IsDir() {
		n.Type = fsbridge.TypeDir
	}
	return n, nil
}

func (o aferoOracle) Names(p string) ([]string, error) {
	f, err := o.fs.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (o aferoOracle) Open(p string) (io.ReadCloser, error) { return o.fs.Open(p) }

func (o aferoOracle) Rename(from, to string) error { return o.fs.Rename(from, to) }

func (o aferoOracle) Remove(p string) error { return o.fs.RemoveAll(p) }

// mounts is the table of an environment in memory.
func mounts(o bridgetest.Options) fsbridge.MountTable {
	t := fsbridge.MountTable{{Path: "/ws", Kind: fsbridge.MountWorkspace, ReadOnly: o.ReadOnly}}
	if o.Bind {
		t = append(t, fsbridge.Mount{Path: "/bind", Kind: fsbridge.MountBind})
	}
	return t
}

// memory is an environment in memory, whose bridge is made by connect from the inner one. The guard
// is then the outer one's.
func memory(connect func(t testing.TB, inner fsbridge.Bridge, o bridgetest.Options) fsbridge.Bridge) func(testing.TB, bridgetest.Options) *bridgetest.Environment {
	return func(t testing.TB, o bridgetest.Options) *bridgetest.Environment {
		if o.DiskSize > 0 {
			t.Skip("a file system in memory has no size")
		}
		if o.Second {
			t.Skip("a file system in memory is one file system")
		}
		mem := afero.NewMemMapFs()
		for _, d := range []string{"/ws", "/out", "/bind"} {
			must(t, mem.Mkdir(d, 0o755))
		}
		opts := aferofs.Options{Mounts: mounts(o), Private: true, ReadLimit: o.ReadLimit, Umask: &o.Umask}
		if connect == nil {
			opts.Assert = o.Guard
		}
		b, err := aferofs.NewBridge(mem, opts)
		must(t, err)
		e := &bridgetest.Environment{Bridge: b, Oracle: aferoOracle{mem}, Workspace: "/ws", Out: "/out"}
		if o.Bind {
			e.Bind = "/bind"
		}
		if connect != nil {
			e.Bridge = connect(t, b, o)
		}
		return e
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMemory holds the bridge over a file system in memory to the whole suite.
// FSB-01 FSB-07 FSB-08 FSB-09 FSB-10
func TestMemory(t *testing.T) {
	bridgetest.Run(t, bridgetest.Target{
		Name: "afero-memory", Declared: memDeclared(), MaxFile: 64 << 20, New: memory(nil),
	})
}
