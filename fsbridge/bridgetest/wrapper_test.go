package bridgetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
)

// everything is a wrapper by embedding: it forwards what its bridge has when all of it is there.
type everything interface {
	fsbridge.Bridge
	fsbridge.Lstater
	fsbridge.SourceReader
	fsbridge.RangeReader
	fsbridge.StreamReader
	fsbridge.StreamWriter
	fsbridge.ExclusiveCreator
	fsbridge.Appender
	fsbridge.Mkdirer
	fsbridge.Remover
	fsbridge.Renamer
	fsbridge.Copier
	fsbridge.LinkReader
	fsbridge.Symlinker
	fsbridge.Chmoder
	fsbridge.DirReader
	fsbridge.DirStreamer
	fsbridge.Walker
	fsbridge.Hasher
	fsbridge.Globber
	fsbridge.Watcher
	fsbridge.Mounter
}

// changed overrides one thing of a complete bridge.
type changed struct{ everything }

type dropsContext struct{ everything }

func (d dropsContext) HashFile(_ context.Context, p string) (fsbridge.FileHash, error) {
	return d.everything.HashFile(context.Background(), p)
}

type swallows struct{ everything }

func (s swallows) Remove(ctx context.Context, p string, o fsbridge.RemoveOptions) error {
	_ = s.everything.Remove(ctx, p, o)
	return nil
}

type dropsOptions struct{ everything }

func (d dropsOptions) Mkdir(ctx context.Context, p string, _ fsbridge.MkdirOptions) error {
	return d.everything.Mkdir(ctx, p, fsbridge.MkdirOptions{})
}

// TestCheckWrapper holds wrappers to the check: the identity passes, and each faulty one fails.
// FSB-09
func TestCheckWrapper(t *testing.T) {
	t.Run("identity", func(t *testing.T) {
		bridgetest.CheckWrapper(t, func(b fsbridge.Bridge) fsbridge.Bridge { return b }, bridgetest.WrapperOptions{})
	})
	const variable = "BERTH_TEST_WRAPPER"
	wrap := func(of func(everything) fsbridge.Bridge) func(fsbridge.Bridge) fsbridge.Bridge {
		return func(b fsbridge.Bridge) fsbridge.Bridge {
			if e, ok := b.(everything); ok {
				return of(e)
			}
			return b
		}
	}
	faulty := map[string]struct {
		wrap  func(fsbridge.Bridge) fsbridge.Bridge
		finds string
	}{
		"hides everything":   {func(b fsbridge.Bridge) fsbridge.Bridge { return struct{ fsbridge.Bridge }{b} }, `does not forward "walk"`},
		"forgets the denial": {wrap(func(e everything) fsbridge.Bridge { return changed{e} }), `declares "walk", which`},
		"drops the context":  {wrap(func(e everything) fsbridge.Bridge { return dropsContext{e} }), "hash: the context did not reach"},
		"swallows errors":    {wrap(func(e everything) fsbridge.Bridge { return swallows{e} }), "remove: error <nil> came back"},
		"drops options":      {wrap(func(e everything) fsbridge.Bridge { return dropsOptions{e} }), "mkdir: the wrapped bridge saw"},
	}
	if name := os.Getenv(variable); name != "" {
		bridgetest.CheckWrapper(t, faulty[name].wrap, bridgetest.WrapperOptions{})
		return
	}
	for name, f := range faulty {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckWrapper$", "-test.count=1")
			cmd.Env = append(os.Environ(), variable+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the check passes a faulty wrapper:\n%s", out)
			}
			if !strings.Contains(string(out), f.finds) {
				t.Errorf("the check did not say %q:\n%s", f.finds, out)
			}
		})
	}
}

// readOnly hides every change.
type readOnly struct{ b everything }

func (r readOnly) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	return r.b.Stat(ctx, p)
}
func (r readOnly) ReadFile(ctx context.Context, p string) ([]byte, error) {
	return r.b.ReadFile(ctx, p)
}
func (r readOnly) WriteFile(_ context.Context, p string, _ []byte) error {
	return &fsbridge.PathError{Op: "write", Path: p, Err: fsbridge.ErrReadOnly}
}

// TestCheckWrapperHides proves that what a wrapper hides on purpose is no fault.
func TestCheckWrapperHides(t *testing.T) {
	bridgetest.CheckWrapper(t, func(b fsbridge.Bridge) fsbridge.Bridge {
		if e, ok := b.(everything); ok {
			return readOnly{e}
		}
		return struct{ fsbridge.Bridge }{b}
	}, bridgetest.WrapperOptions{Hides: fsbridge.AllCapabilities(), HidesWrite: true})
}
