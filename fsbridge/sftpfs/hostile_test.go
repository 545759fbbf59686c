//go:build linux

package sftpfs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
)

// TestHostileAnswers lets the server answer what no server may: every call ends with an error, and never
// with the server's content. C025
func TestHostileAnswers(t *testing.T) {
	u32 := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	read := func(b *sftpfs.Bridge) error { _, err := b.ReadFile(t.Context(), "f"); return err }
	list := func(b *sftpfs.Bridge) error { _, err := b.ReadDirectory(t.Context(), "."); return err }
	stat := func(b *sftpfs.Bridge) error { _, err := b.Stat(t.Context(), "f"); return err }
	long := strings.Repeat("x", 256)
	for name, tc := range map[string]struct {
		typ  byte
		with *answer
		do   func(*sftpfs.Bridge) error
		want error
	}{
		"status in place of attributes":   {pktLstat, status(0), stat, fsbridge.ErrUnavailable},
		"status in place of the root's":   {pktStat, status(0), list, fsbridge.ErrUnavailable},
		"attributes cut short":            {pktLstat, &answer{pktAttrs, u32(5)}, stat, fsbridge.ErrUnavailable},
		"attributes of another kind":      {pktLstat, &answer{pktName, u32(7)}, stat, fsbridge.ErrUnavailable},
		"size beyond every file":          {pktFstat, attrs(0o100644, math.MaxUint64), read, fsbridge.ErrUnavailable},
		"no file type":                    {pktFstat, attrs(0o644, 5), read, fsbridge.ErrNotRegular},
		"a FIFO behind the name":          {pktFstat, attrs(0o010644, 5), read, fsbridge.ErrNotRegular},
		"a size above the limit":          {pktFstat, attrs(0o100644, 1<<40), read, fsbridge.ErrTooLarge},
		"data with a length that lies":    {pktRead, &answer{pktData, append(u32(1<<31), "x"...)}, read, fsbridge.ErrUnavailable},
		"data without a length":           {pktRead, &answer{pktData, []byte{0}}, read, fsbridge.ErrUnavailable},
		"no handle":                       {pktOpen, status(0), read, fsbridge.ErrUnavailable},
		"a name with a parent":            {pktReaddir, names("a", "x/.."), list, fsbridge.ErrUnavailable},
		"an empty name":                   {pktReaddir, names(""), list, fsbridge.ErrUnavailable},
		"a name that is a slash":          {pktReaddir, names("/"), list, fsbridge.ErrUnavailable},
		"a name with a NUL":               {pktReaddir, names("a\x00b"), list, fsbridge.ErrUnavailable},
		"a name that is too long":         {pktReaddir, names(long), list, fsbridge.ErrUnavailable},
		"a name twice":                    {pktReaddir, names("a", "a"), list, fsbridge.ErrUnavailable},
		"fewer names than announced":      {pktReaddir, &answer{pktName, u32(1 << 30)}, list, fsbridge.ErrUnavailable},
		"an end that comes with no code":  {pktReaddir, &answer{pktStatus, nil}, list, fsbridge.ErrUnavailable},
		"a refusal in the server's words": {pktOpen, status(4), read, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var once atomic.Bool
			client := scripted(t, func(typ byte, body []byte) *answer {
				switch {
				case typ == pktLstat && tc.typ == pktLstat && strings.HasSuffix(string(body), "/ws"):
					return ordinary
				case typ == pktReaddir && once.Swap(true):
					return status(1)
				case typ == tc.typ:
					return tc.with
				}
				return ordinary
			})
			b := bridge(t, client, "/ws")
			err := within(t, func() error { return tc.do(b) })
			var pe *fsbridge.PathError
			if !errors.As(err, &pe) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "text of the server") {
				t.Errorf("the server speaks to the caller: %v", err)
			}
		})
	}
}

// TestLinksOfAHostileServer: targets that are no paths, and a chain without end.
func TestLinksOfAHostileServer(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		want   error
	}{
		"empty":    {"", fsbridge.ErrUnavailable},
		"NUL":      {"a\x00b", fsbridge.ErrUnavailable},
		"too long": {strings.Repeat("a/", 3000), fsbridge.ErrUnavailable},
		"outside":  {"/etc/passwd", fsbridge.ErrOutsideRoot},
		"upwards":  {"../etc/passwd", fsbridge.ErrOutsideRoot},
		"endless":  {"f", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			client := scripted(t, func(typ byte, body []byte) *answer {
				switch {
				case typ == pktLstat && !strings.HasSuffix(string(body), "/ws"):
					if strings.Contains(string(body), "etc") {
						t.Error("the bridge asks about what lies outside")
					}
					return attrs(0o120777, 1)
				case typ == pktReadlnk:
					asked.Add(1)
					return names(tc.target)
				}
				return ordinary
			})
			b := bridge(t, client, "/ws")
			err := within(t, func() error { _, err := b.ReadFile(t.Context(), "f"); return err })
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if asked.Load() > 50 {
				t.Errorf("%d links were followed", asked.Load())
			}
		})
	}
}

// TestEndlessFile: a server that says five bytes and sends for ever is cut off at the limit.
func TestEndlessFile(t *testing.T) {
	t.Parallel()
	client := scripted(t, func(typ byte, body []byte) *answer {
		if typ == pktRead {
			n := binary.BigEndian.Uint32(body[len(body)-4:])
			return &answer{pktData, appendString(nil, strings.Repeat("x", int(n)))}
		}
		return ordinary
	})
	b := bridge(t, client, "/ws", func(o *sftpfs.Options) { o.ReadLimit = 1 << 20 })
	data, err := b.ReadFile(t.Context(), "f")
	if !errors.Is(err, fsbridge.ErrTooLarge) || len(data) > 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, err := b.ReadRange(t.Context(), "f", 0, 5); err != nil || string(data) != "xxxxx" {
		t.Errorf("range: %q, %v", data, err)
	}
}

// TestSilentServer: no call waits for longer than it may, and a change without an answer is an unknown
// outcome. FSB-11
func TestSilentServer(t *testing.T) {
	silent := func(when byte) script {
		return func(typ byte, body []byte) *answer {
			if typ == when {
				return nil
			}
			if p, _ := cutString(body); typ == pktLstat && strings.HasSuffix(p, "new") {
				return status(2)
			}
			return ordinary
		}
	}
	short := func(o *sftpfs.Options) { o.RequestTimeout = 300 * time.Millisecond }
	write := func(ctx context.Context, b *sftpfs.Bridge) error { return b.WriteFile(ctx, "f", []byte("x")) }
	read := func(ctx context.Context, b *sftpfs.Bridge) error { _, err := b.ReadFile(ctx, "f"); return err }
	remove := func(ctx context.Context, b *sftpfs.Bridge) error {
		return b.Remove(ctx, "f", fsbridge.RemoveOptions{})
	}
	for name, tc := range map[string]struct {
		when    byte
		do      func(context.Context, *sftpfs.Bridge) error
		want    error
		decided bool // cancelling it leaves an unknown outcome too
	}{
		"lstat":                  {pktLstat, read, fsbridge.ErrUnavailable, false},
		"open":                   {pktOpen, read, fsbridge.ErrUnavailable, false},
		"read":                   {pktRead, read, fsbridge.ErrUnavailable, false},
		"open of the temporary":  {pktOpen, write, fsbridge.ErrOutcomeUnknown, false},
		"content":                {pktWrite, write, fsbridge.ErrOutcomeUnknown, false},
		"close of the temporary": {pktClose, write, fsbridge.ErrOutcomeUnknown, false},
		"rename":                 {pktExtend, write, fsbridge.ErrOutcomeUnknown, true},
		"remove":                 {pktRemove, remove, fsbridge.ErrOutcomeUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bridge(t, scripted(t, silent(tc.when)), "/ws", short)
			err := within(t, func() error { return tc.do(t.Context(), b) })
			if !errors.Is(err, tc.want) {
				t.Errorf("timeout: %v, want %v", err, tc.want)
			}
			b = bridge(t, scripted(t, silent(tc.when)), "/ws")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err = within(t, func() error { return tc.do(ctx, b) })
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fsbridge.ErrOutcomeUnknown) != tc.decided {
				t.Errorf("deadline: %v", err)
			}
		})
	}
}

// TestAbandonedRequestsAreBounded: a server that never answers does not collect goroutines without end.
func TestAbandonedRequestsAreBounded(t *testing.T) {
	t.Parallel()
	client := scripted(t, func(byte, []byte) *answer { return nil })
	b := bridge(t, client, "/ws", func(o *sftpfs.Options) { o.RequestTimeout = time.Millisecond })
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 100 {
				_, err := b.Stat(t.Context(), "f")
				if !errors.Is(err, fsbridge.ErrUnavailable) {
					t.Errorf("stat: %v", err)
				}
				if strings.Contains(err.Error(), "unanswered") {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("3200 requests were given up and all were sent")
	}
}

// TestWaitingForAName: a call that waits for another one on the same name obeys its own context, and one on
// another name does not wait.
func TestWaitingForAName(t *testing.T) {
	t.Parallel()
	renaming := make(chan struct{}, 10)
	var first atomic.Bool
	client := scripted(t, func(typ byte, _ []byte) *answer {
		if typ == pktExtend {
			renaming <- struct{}{}
			if !first.Swap(true) {
				return nil
			}
		}
		return ordinary
	})
	b := bridge(t, client, "/ws")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.WriteFile(ctx, "f", []byte("first")) }()
	<-renaming
	short, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	err := within(t, func() error { return b.WriteFile(short, "f", []byte("second")) })
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
		t.Errorf("second: %v", err)
	}
	for _, p := range []string{"a", "b", "c"} { // one of them may share the lock
		go func() { done <- b.WriteFile(ctx, p, []byte("other")) }()
	}
	if err := within(t, func() error { return <-done }); err != nil {
		t.Errorf("on another name: %v", err)
	}
	cancel()
	for range 3 {
		err := within(t, func() error { return <-done })
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

// TestGuardBeforeEveryRequest counts what is sent and how often the guard was asked before. FSB-10
func TestGuardBeforeEveryRequest(t *testing.T) {
	t.Parallel()
	var asked, sent atomic.Int64
	client := scripted(t, func(typ byte, _ []byte) *answer {
		if typ != pktClose && typ != pktRemove {
			if n := sent.Add(1); n > asked.Load() {
				t.Errorf("request %d of type %d is sent and the guard was asked %d times", n, typ, asked.Load())
			}
		}
		return ordinary
	})
	gone := errors.New("gone")
	var stopAt atomic.Int64
	stopAt.Store(math.MaxInt64)
	b := bridge(t, client, "/ws", func(o *sftpfs.Options) {
		o.Assert = func() error {
			if asked.Add(1) > stopAt.Load() {
				return gone
			}
			return nil
		}
	})
	write := func() error { return b.WriteFile(t.Context(), "f", []byte(strings.Repeat("x", 200_000))) }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	whole := asked.Load()
	if sent.Load() < 10 {
		t.Errorf("only %d requests for seven chunks", sent.Load())
	}
	for n := range whole { // the guard fails at every moment there is
		stopAt.Store(asked.Load() + n)
		before := sent.Load()
		err := write()
		if !errors.Is(err, fsbridge.ErrNotCurrent) || !errors.Is(err, gone) {
			t.Errorf("the guard fails after %d times: %v", n, err)
		}
		if sent.Load()-before > n {
			t.Errorf("the guard held %d times and %d requests were sent", n, sent.Load()-before)
		}
	}
}
