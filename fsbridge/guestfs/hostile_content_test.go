package guestfs_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/wire"
)

// Content that comes in parts is checked as well: its total, its limit, its end.
func TestHostileContent(t *testing.T) {
	part := append([]byte{wire.ChannelOut}, make([]byte, 50)...)
	head := map[string][]byte{
		"read": {200, 1}, "range": {90}, "open": wire.AppendInfo(nil, file("f")), "source": source("/ws/f", "f", 100, ""),
	}
	for name, c := range map[string]struct {
		total int64 // told in the last frame; negative: something else
		limit int64
		want  error
	}{
		"less than told": {40, 1000, wire.ErrProtocol},
		"more than told": {60, 1000, wire.ErrProtocol},
		"no total":       {-1, 1000, wire.ErrProtocol},
		"over the limit": {50, 49, fsbridge.ErrTooLarge},
	} {
		for call, head := range head {
			if c.limit < 50 && call == "open" || call == "range" && c.limit > 50 && c.want == fsbridge.ErrTooLarge {
				continue
			}
			b, _ := withPeer(t, guestfs.Options{ReadLimit: c.limit}, func(p *guesttest.Peer) {
				stream, _ := p.Until(wire.KindOpen)
				p.Send(wire.KindReply, stream, head)
				p.Send(wire.KindData, stream, part)
				if c.total < 0 {
					p.Send(wire.KindDone, stream, nil)
				} else {
					p.Send(wire.KindDone, stream, []byte{byte(c.total)})
				}
				p.Drain()
			})
			if call == "range" && c.limit < 100 {
				if _, err := b.ReadRange(t.Context(), "f", 0, c.limit); !errors.Is(err, c.want) {
					t.Errorf("%s, %s: %v, want %v", name, call, err, c.want)
				}
				continue
			}
			if err := calls()[call](t.Context(), b); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", name, call, err, c.want)
			}
		}
	}
}

// A size that lies costs no memory: the room grows with what arrives.
func TestLyingSize(t *testing.T) {
	b, _ := withPeer(t, guestfs.Options{ReadLimit: 1 << 40}, func(p *guesttest.Peer) {
		for {
			stream, payload := p.Until(wire.KindOpen)
			if payload == nil {
				return
			}
			p.Send(wire.KindReply, stream, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x20}) // 1 TiB
			p.Send(wire.KindData, stream, []byte{wire.ChannelOut, 'x'})
			p.Send(wire.KindFail, stream, wire.AppendError(nil, errors.New("that was all")))
			if wire.Op(payload[0]) == wire.OpRead {
				return
			}
		}
	})
	if _, err := b.ReadFile(t.Context(), "f"); err == nil || !strings.Contains(err.Error(), "that was all") {
		t.Errorf("error %v", err)
	}
}

// Success for a write whose content was never complete is a lie.
func TestPrematureSuccess(t *testing.T) {
	broken := errors.New("the source is broken")
	b, conn := withPeer(t, guestfs.Options{}, func(p *guesttest.Peer) {
		stream, _ := p.Until(wire.KindOpen)
		p.Until(wire.KindCancel)
		p.Send(wire.KindDone, stream, wire.AppendWriteResult(nil, fsbridge.WriteResult{FileHash: fsbridge.FileHash{Digest: fsbridge.Digest(strings.Repeat("a", 64))}}))
		p.Drain()
	})
	src := io.MultiReader(bytes.NewReader(make([]byte, 100_000)), failing{broken})
	_, err := b.WriteStream(t.Context(), "f", src, fsbridge.WriteOptions{})
	if !errors.Is(err, fsbridge.ErrOutcomeUnknown) || !errors.Is(conn.Err(), wire.ErrProtocol) {
		t.Errorf("error %v, connection %v", err, conn.Err())
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Whatever the helper says of paths, errors name the caller's; what it says of
// reasons is fit to print.
func TestHostileErrors(t *testing.T) {
	b, conn := withPeer(t, guestfs.Options{}, func(p *guesttest.Peer) {
		for {
			stream, payload := p.Until(wire.KindOpen)
			if payload == nil || wire.Op(payload[0]) == wire.OpEcho {
				p.Send(wire.KindDone, stream, payload[1:])
				return
			}
			p.Send(wire.KindFail, stream, wire.AppendError(nil, &fsbridge.PathError{
				Op: "\x1b[2Jremove", Path: "/home/someone/.ssh/id_ed25519", Err: errors.New("\x1b]0;evil\x07"), Hint: "run\nrm -rf /",
			}))
		}
	})
	for name, call := range calls() {
		if name == "write large" {
			continue
		}
		err := call(t.Context(), b)
		var pe *fsbridge.PathError
		if !errors.As(err, &pe) || pe.Path != "f" && pe.Path != "d" && pe.Path != "l" && pe.Path != "d/*" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.ContainsAny(err.Error()+pe.Hint, "\x1b\x07\n") {
			t.Errorf("%s: %q, %q", name, err, pe.Hint)
		}
	}
	if _, err := conn.Echo(t.Context(), []byte("x")); err != nil {
		t.Errorf("connection: %v", err)
	}
}

// An event of a path that climbs ends the watch.
func TestHostileEvents(t *testing.T) {
	for p, bad := range map[string]bool{"": false, "a/b": false, "../a": true, "/a": true, "a/../b": true, "a//b": true, "..": true} {
		b, conn := withPeer(t, guestfs.Options{}, func(p2 *guesttest.Peer) {
			stream, _ := p2.Until(wire.KindOpen)
			p2.Send(wire.KindReply, stream, nil)
			p2.Send(wire.KindData, stream, append([]byte{wire.ChannelOut}, happening(p)...))
			p2.Send(wire.KindDone, stream, nil)
			p2.Drain()
		})
		w, err := b.Watch(t.Context(), "d", fsbridge.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for e := range w.Events() {
			got = append(got, e.Path)
		}
		switch {
		case bad && (len(got) > 0 || !errors.Is(w.Err(), fsbridge.ErrUnavailable) || !errors.Is(conn.Err(), wire.ErrProtocol)):
			t.Errorf("%q: events %q, %v, connection %v", p, got, w.Err(), conn.Err())
		case !bad && (len(got) != 1 || got[0] != p || w.Err() != nil):
			t.Errorf("%q: events %q, %v", p, got, w.Err())
		}
		_ = w.Close()
	}
}
