//go:build linux

package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

var errRevoked = errors.New("the lease ended")

// FSB-10: the guard's error and the sentinel are both there, for a guard of the bridge and for one
// of a view.
func TestGuardErrors(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("f"), "x")
	refuse := func() error { return errRevoked }
	for name, b := range map[string]*Bridge{
		"bridge": d.bridge(Options{Mounts: d.b.Mounts(), Assert: refuse}),
		"view":   d.b.Guarded(refuse),
		"both":   d.b.Guarded(func() error { return nil }).Guarded(refuse),
	} {
		_, err := b.Stat(t.Context(), "f")
		var pe *fsbridge.PathError
		if !errors.Is(err, fsbridge.ErrNotCurrent) || !errors.Is(err, errRevoked) || !errors.As(err, &pe) || pe.Path != "f" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.b.Stat(t.Context(), "f"); err != nil {
		t.Errorf("the bridge without a guard: %v", err)
	}
}

// FSB-10 FSB-12: wherever in a call the authority ends, nothing is changed from then on, and the
// call says so.
func TestRevokedAtEachStep(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 3*chunk+1)
	for name, op := range map[string]func(ctx context.Context, b *Bridge) error{
		"write":         func(ctx context.Context, b *Bridge) error { return b.WriteFile(ctx, "f", big) },
		"write-parents": func(ctx context.Context, b *Bridge) error { return b.WriteFile(ctx, "n/m/f", big) },
		"stream": func(ctx context.Context, b *Bridge) error {
			_, err := b.WriteStream(ctx, "f", bytes.NewReader(big), fsbridge.WriteOptions{If: fsbridge.Precondition{Hash: hashOf("old")}})
			return err
		},
		"copy": func(ctx context.Context, b *Bridge) error { return b.Copy(ctx, "big", "f", fsbridge.CopyOptions{}) },
		"copy-tree": func(ctx context.Context, b *Bridge) error {
			return b.Copy(ctx, "d", "d2", fsbridge.CopyOptions{Recursive: true})
		},
		"rename": func(ctx context.Context, b *Bridge) error {
			return b.Rename(ctx, "big", "n/f", fsbridge.RenameOptions{Parents: true})
		},
		"mkdir": func(ctx context.Context, b *Bridge) error {
			return b.Mkdir(ctx, "n/m/o", fsbridge.MkdirOptions{Parents: true})
		},
		"chmod":   func(ctx context.Context, b *Bridge) error { return b.Chmod(ctx, "f", 0o600) },
		"symlink": func(ctx context.Context, b *Bridge) error { return b.Symlink(ctx, "f", "l", fsbridge.SymlinkOptions{}) },
		"remove": func(ctx context.Context, b *Bridge) error {
			return b.Remove(ctx, "d", fsbridge.RemoveOptions{Recursive: true})
		},
		"append": func(ctx context.Context, b *Bridge) error { return b.AppendFile(ctx, "new", big) },
	} {
		t.Run(name, func(t *testing.T) {
			for allowed := 0; ; allowed++ {
				d := newDirs(t, ways()["kernel"])
				d.put(d.in("f"), "old")
				must(t, os.WriteFile(d.in("big"), big, 0o644))
				d.put(d.in("d/e/f"), "x")
				calls := 0
				var before string
				b := d.b.Guarded(func() error {
					calls++
					switch {
					case calls <= allowed:
						return nil
					case calls == allowed+1:
						before = shape(t, d.ws)
					}
					return errRevoked
				})
				err := op(t.Context(), b)
				if err == nil {
					if allowed < 2 {
						t.Errorf("the guard was asked %d times only", allowed)
					}
					return
				}
				if !errors.Is(err, fsbridge.ErrNotCurrent) {
					t.Fatalf("after %d: %v", allowed, err)
				}
				if calls > allowed+1 {
					t.Errorf("after %d: asked %d times more", allowed, calls-allowed-1)
				}
				if after := shape(t, d.ws); name != "copy-tree" && after != before {
					t.Errorf("after %d: changed from\n%s\nto\n%s", allowed, before, after)
				} else if name == "copy-tree" {
					if _, err := os.Lstat(d.in("d2")); err == nil {
						t.Error("a copy appeared")
					}
					noTemps(t, d.ws)
				}
			}
		})
	}
}

// A stream looks at the guard before each read. FSB-10
func TestReaderGuard(t *testing.T) {
	d := newDirs(t, ways()["kernel"])
	d.put(d.in("f"), "content")
	revoked := false
	b := d.b.Guarded(func() error {
		if revoked {
			return errRevoked
		}
		return nil
	})
	r, _, err := b.OpenReader(t.Context(), "f")
	must(t, err)
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	revoked = true
	if n, err := r.Read(make([]byte, 3)); n != 0 || !errors.Is(err, fsbridge.ErrNotCurrent) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
