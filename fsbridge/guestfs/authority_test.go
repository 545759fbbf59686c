package guestfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

var errGone = errors.New("the turn is over")

// everything is a bridge in memory on which every call succeeds.
func everything() *guesttest.Files {
	closed := make(chan fsbridge.Event)
	close(closed)
	f := &guesttest.Files{Changes: closed, Links: map[string]string{"f": "g"}}
	f.Put("f", "xyz")
	return f
}

// A guard that fails, a revocation and a ctx that is done refuse the call before
// anything is sent, each with its own error. FSB-10 FSB-12
func TestRefusedBeforeSending(t *testing.T) {
	for what, refuse := range map[string]struct {
		opts    guestfs.Options
		done    bool
		changes bool // only those
		want    []error
	}{
		"guard":   {guestfs.Options{Assert: func() error { return errGone }}, false, false, []error{fsbridge.ErrNotCurrent, errGone}},
		"revoked": {guestfs.Options{Revoked: func() error { return errGone }}, false, true, []error{fsbridge.ErrNotCurrent, errGone}},
		"ctx":     {guestfs.Options{}, true, false, []error{context.Canceled}},
	} {
		for name, call := range calls() {
			files := everything()
			if name == "create" {
				files = &guesttest.Files{}
			}
			conn, _ := connect(t, server.Config{Files: files})
			ctx, cancel := context.WithCancel(t.Context())
			if refuse.done {
				cancel()
			}
			err := call(ctx, guestfs.New(conn, refuse.opts))
			cancel()
			if refuse.changes && !isChange(name) {
				if err != nil {
					t.Errorf("%s, %s: %v", what, name, err)
				}
				continue
			}
			for _, want := range refuse.want {
				if !errors.Is(err, want) {
					t.Errorf("%s, %s: %v, want %v", what, name, err, want)
				}
			}
			var pe *fsbridge.PathError
			if !errors.As(err, &pe) || pe.Op == "" {
				t.Errorf("%s, %s: %v is no *PathError", what, name, err)
			}
			if _, err := conn.Echo(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if got := files.Calls(); len(got) > 0 {
				t.Errorf("%s, %s: %q reached the server", what, name, got)
			}
		}
	}
}

// The guard is asked before each frame of content and before the one that completes
// a write; whichever fails, the old file stays, and the source is not read on.
// FSB-10 FSB-12
func TestGuardBetweenFrames(t *testing.T) {
	content := bytes.Repeat([]byte("x"), 1<<20)
	count := func(fail int64) (asked int64, files *guesttest.Files, err error) {
		files = everything()
		var n atomic.Int64
		b := bridge(t, files, guestfs.Options{Assert: func() error {
			if n.Add(1) == fail {
				return errGone
			}
			return nil
		}})
		_, err = b.WriteStream(t.Context(), "f", bytes.NewReader(content), fsbridge.WriteOptions{})
		return n.Load(), files, err
	}
	all, files, err := count(-1)
	if got, _ := files.Get("f"); err != nil || got != string(content) {
		t.Fatalf("write: %v", err)
	}
	// Before the source is read, before the request, before each frame of at most
	// DataChunk, and before the end.
	if least := int64(3 + (len(content)-64<<10)/wire.DataChunk); all < least {
		t.Errorf("asked %d times, want at least %d", all, least)
	}
	whole := content
	content = whole[:64<<10+1000] // one frame after the request
	if asked, _, err := count(-1); asked != 4 || err != nil {
		t.Errorf("asked %d times for one frame of content, want 4, %v", asked, err)
	}
	content = whole
	for fail := int64(1); fail <= all; fail++ {
		_, files, err := count(fail)
		if !errors.Is(err, fsbridge.ErrNotCurrent) || !errors.Is(err, errGone) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			t.Errorf("refused at %d of %d: %v", fail, all, err)
		}
		if got, _ := files.Get("f"); got != "xyz" {
			t.Errorf("refused at %d of %d: the file holds %d bytes", fail, all, len(got))
		}
	}
}

// A reader asks the guard before each Read.
func TestGuardWhileReading(t *testing.T) {
	var gone atomic.Bool
	b := bridge(t, everything(), guestfs.Options{Assert: func() error {
		if gone.Load() {
			return errGone
		}
		return nil
	}})
	r, _, err := b.OpenReader(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	gone.Store(true)
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errGone) {
		t.Errorf("%d, %v", n, err)
	}
}

// A further guard is asked as well, and the first one still.
func TestGuarded(t *testing.T) {
	var first, second atomic.Bool
	check := func(gone *atomic.Bool) fsbridge.AssertFunc {
		return func() error {
			if gone.Load() {
				return errGone
			}
			return nil
		}
	}
	plain := bridge(t, everything(), guestfs.Options{Assert: check(&first)})
	guarded := plain.Guarded(check(&second))
	stat := func(b *guestfs.Bridge) bool { _, err := b.Stat(t.Context(), "f"); return err == nil }
	if !stat(plain) || !stat(guarded) {
		t.Error("refused although both hold")
	}
	second.Store(true)
	if !stat(plain) || stat(guarded) {
		t.Error("the further guard counts for the wrong bridge")
	}
	second.Store(false)
	first.Store(true)
	if stat(plain) || stat(guarded) {
		t.Error("the first guard does not count")
	}
	if !stat(bridge(t, everything(), guestfs.Options{}).Guarded(nil)) {
		t.Error("no guard refuses")
	}
}

// A bridge declares what the server declares, and names what is missing without
// asking it. FSB-09
func TestDeclared(t *testing.T) {
	for _, declared := range [][]fsbridge.Capability{{}, {fsbridge.CapLstat, fsbridge.CapMounts}, fsbridge.AllCapabilities()} {
		files := everything()
		files.Declared = declared
		b := bridge(t, files, guestfs.Options{})
		if got := fsbridge.CapabilitiesOf(b); !slices.Equal(got, declared) && len(got)+len(declared) > 0 {
			t.Errorf("declared %v, want %v", got, declared)
		}
		for name, call := range calls() {
			files := everything()
			if name == "create" {
				files = &guesttest.Files{}
			}
			files.Declared = declared
			err := call(t.Context(), bridge(t, files, guestfs.Options{}))
			core := name == "stat" || name == "read" || name == "write"
			has := core || len(declared) > 2 || name == "lstat" && len(declared) > 0
			var missing *fsbridge.UnsupportedError
			if has && err != nil || !has && (!errors.As(err, &missing) || missing.Capability == "") {
				t.Errorf("%v: %s: %v", declared, name, err)
			}
			if got := files.Calls(); !has && len(got) > 0 {
				t.Errorf("%v: %s: %q reached the server", declared, name, got)
			}
		}
	}
}

// The host's own mount table counts before the helper's.
func TestHostsMounts(t *testing.T) {
	mine := fsbridge.MountTable{{Path: "/elsewhere", Kind: fsbridge.MountWorkspace}}
	b := bridge(t, everything(), guestfs.Options{Mounts: mine})
	if got := b.Mounts(); len(got) != 1 || got[0] != mine[0] {
		t.Errorf("mounts %+v", got)
	}
	if _, err := b.ReadFileWithSource(t.Context(), "f"); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("a location outside the host's table: %v", err)
	}
}

// When the connection fails, what was not sent is unavailable, what only reads too,
// and a change that was sent has an unknown outcome. FSB-11
func TestLostConnection(t *testing.T) {
	for name, call := range calls() {
		b, conn := withPeer(t, guestfs.Options{}, func(p *guesttest.Peer) { p.Until(wire.KindOpen) })
		err := call(t.Context(), b)
		if want := outcome(name); !errors.Is(err, want) {
			t.Errorf("%s, cut after it was sent: %v, want %v", name, err, want)
		}
		var pe *fsbridge.PathError
		if !errors.As(err, &pe) || pe.Hint == "" {
			t.Errorf("%s: %v has no advice", name, err)
		}
		guesttest.Within(t, "the connection ends", conn.Done())
		err = call(t.Context(), b)
		if !errors.Is(err, fsbridge.ErrUnavailable) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			t.Errorf("%s, on a dead connection: %v, want %v", name, err, fsbridge.ErrUnavailable)
		}
	}
}

// When ctx ends while a change is under way, the answer is the truth: the helper's
// if it comes, and otherwise that nobody knows. FSB-11
func TestCancelledChange(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(p *guesttest.Peer, stream uint64)
		want   []error
	}{
		"it happened": {func(p *guesttest.Peer, s uint64) { p.Send(wire.KindDone, s, nil) }, nil},
		"it did not": {func(p *guesttest.Peer, s uint64) {
			p.Send(wire.KindFail, s, wire.AppendError(nil, &fsbridge.PathError{Op: "remove", Path: "f", Err: context.Canceled}))
		}, []error{context.Canceled}},
		"it failed": {func(p *guesttest.Peer, s uint64) {
			p.Send(wire.KindFail, s, wire.AppendError(nil, fsbridge.ErrReadOnly))
		}, []error{fsbridge.ErrReadOnly}},
		"silence": {func(*guesttest.Peer, uint64) {}, []error{fsbridge.ErrOutcomeUnknown, context.Canceled}},
		"cut":     {func(p *guesttest.Peer, _ uint64) { p.Close() }, []error{fsbridge.ErrOutcomeUnknown}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		host, guest := guesttest.SocketPair(t)
		over := make(chan struct{})
		go func() {
			defer close(over)
			p := guesttest.NewPeer(t, guest)
			p.Greet(guesttest.FullHello())
			stream, _ := p.Until(wire.KindOpen)
			cancel()
			p.Until(wire.KindCancel)
			c.answer(p, stream)
			p.Drain()
		}()
		wait := guesttest.Patience
		if name == "silence" {
			wait = time.Millisecond
		}
		conn, err := client.New(t.Context(), host, client.Options{CancelWait: wait})
		if err != nil {
			t.Fatal(err)
		}
		err = guestfs.New(conn, guestfs.Options{}).Remove(ctx, "f", fsbridge.RemoveOptions{})
		if len(c.want) == 0 && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		_ = conn.Close()
		<-over
	}
}

// A source that fails breaks the write off: its error is told, the old file stays.
func TestBrokenSource(t *testing.T) {
	broken := errors.New("the source is broken")
	for _, n := range []int{0, 1, 64<<10 - 1, 64 << 10, 300_000, 3 << 20} {
		for _, cause := range []error{broken, io.ErrUnexpectedEOF, context.Canceled} {
			files := everything()
			b := bridge(t, files, guestfs.Options{})
			src := io.MultiReader(bytes.NewReader(make([]byte, n)), failing{cause})
			_, err := b.WriteStream(t.Context(), "f", src, fsbridge.WriteOptions{})
			if !errors.Is(err, cause) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
				t.Errorf("%d bytes, %v: %v", n, cause, err)
			}
			if got, _ := files.Get("f"); got != "xyz" {
				t.Errorf("%d bytes, %v: the file holds %d bytes", n, cause, len(got))
			}
		}
	}
	b := bridge(t, everything(), guestfs.Options{})
	if _, err := b.WriteStream(t.Context(), "f", idle{}, fsbridge.WriteOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that yields nothing: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// A server that gives a call up for reasons of its own does not make it look as if
// the caller's ctx had ended.
func TestForeignCancel(t *testing.T) {
	files := everything()
	files.Hook = func(context.Context, string, string) error { return context.Canceled }
	b := bridge(t, files, guestfs.Options{})
	if _, err := b.Stat(t.Context(), "f"); !errors.Is(err, fsbridge.ErrUnavailable) || errors.Is(err, context.Canceled) {
		t.Errorf("stat: %v", err)
	}
	if err := b.Mkdir(t.Context(), "d", fsbridge.MkdirOptions{}); !errors.Is(err, fsbridge.ErrOutcomeUnknown) || errors.Is(err, context.Canceled) {
		t.Errorf("mkdir: %v", err)
	}
}
