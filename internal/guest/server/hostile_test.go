package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/server"
	"github.com/workberth/workberth/internal/guest/wire"
)

func credit(channel uint8, n uint64) []byte { return binary.AppendUvarint([]byte{channel}, n) }

func data(channel uint8, n int) []byte { return append([]byte{channel}, make([]byte, n)...) }

// A client that breaks the protocol loses the connection, and its command ends.
func TestHostileFrames(t *testing.T) {
	frame := func(kind wire.Kind, stream uint64, payload []byte) func(p *guesttest.Peer) {
		return func(p *guesttest.Peer) { p.Send(kind, stream, payload) }
	}
	for name, c := range map[string]struct {
		does func(p *guesttest.Peer)
		want string
	}{
		"frame of 4 GiB":        {func(p *guesttest.Peer) { p.Write([]byte("\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00\x02")) }, "at most 1048576"},
		"text":                  {func(p *guesttest.Peer) { p.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n")) }, "at most 1048576"},
		"unknown kind":          {func(p *guesttest.Peer) { p.Write([]byte("\x00\x00\x00\x09\x7f\x00\x00\x00\x00\x00\x00\x00\x02")) }, "unknown kind 127"},
		"hello again":           {frame(wire.KindHello, 1, nil), "hello frame from a client"},
		"reply":                 {frame(wire.KindReply, 1, nil), "reply frame from a client"},
		"done":                  {frame(wire.KindDone, 1, nil), "done frame from a client"},
		"fail":                  {frame(wire.KindFail, 1, nil), "fail frame from a client"},
		"the same stream":       {frame(wire.KindOpen, 1, []byte{byte(wire.OpEcho)}), "stream 1 opened after stream 1"},
		"stream zero":           {frame(wire.KindOpen, 0, []byte{byte(wire.OpEcho)}), "stream 0 opened after stream 1"},
		"a stream of tomorrow":  {frame(wire.KindCancel, 2, nil), "never opened"},
		"the last stream":       {frame(wire.KindData, math.MaxUint64, data(0, 1)), "never opened"},
		"data for output":       {frame(wire.KindData, 1, data(1, 1)), "takes none"},
		"data without channel":  {frame(wire.KindData, 1, nil), "takes none"},
		"end of channel 7":      {frame(wire.KindEnd, 1, []byte{7}), "does not exist"},
		"end with more":         {frame(wire.KindEnd, 1, []byte{0, 0}), "does not exist"},
		"credit overflow":       {frame(wire.KindCredit, 1, credit(1, wire.MaxWindow)), "at most 16777216 are allowed"},
		"credit of 2^63":        {frame(wire.KindCredit, 1, credit(2, 1<<63)), "at most 16777216 is allowed"},
		"credit for input":      {frame(wire.KindCredit, 1, credit(0, 1)), "credit for channel 0"},
		"credit for channel 99": {frame(wire.KindCredit, 1, credit(99, 1)), "credit for channel 99"},
		"credit with more":      {frame(wire.KindCredit, 1, append(credit(1, 1), 1)), "too many"},
		"credit without number": {frame(wire.KindCredit, 1, nil), "cut short"},
		"data beyond credit": {func(p *guesttest.Peer) {
			for range wire.StreamWindow/(64<<10) + 2 {
				p.Send(wire.KindData, 1, data(0, 64<<10))
			}
		}, "with a credit of"},
		"data after end": {func(p *guesttest.Peer) {
			p.Send(wire.KindEnd, 1, []byte{0})
			p.Send(wire.KindData, 1, data(0, 1))
		}, "after the end"},
	} {
		t.Run(name, func(t *testing.T) {
			runner := &guesttest.Runner{Commands: guesttest.Commands()}
			p, served := serve(t, t.Context(), server.Config{Runner: runner})
			p.SayHello()
			p.Send(wire.KindOpen, 1, open(wire.OpExec, wire.ExecRequest{Spec: proc.Spec{Argv: []string{"sleep"}, Stdin: true}}))
			p.Until(wire.KindReply)
			c.does(p)
			go p.Drain()
			err := guesttest.Within(t, "Serve returns", served)
			if !errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Serve: %v, want a violation that says %q", err, c.want)
			}
			guesttest.Within(t, "the command ends", runner.Started()[0].Over())
		})
	}
}

// What a client sent before it knew that its call was over is no violation.
func TestLateFrames(t *testing.T) {
	p, served := serve(t, t.Context(), server.Config{})
	p.SayHello()
	p.Send(wire.KindOpen, 7, []byte{byte(wire.OpEcho), 'x'})
	p.Until(wire.KindDone)
	p.Send(wire.KindData, 7, data(0, 100))
	p.Send(wire.KindEnd, 7, []byte{0})
	p.Send(wire.KindCredit, 7, credit(1, wire.MaxWindow))
	p.Send(wire.KindCancel, 7, nil)
	p.Send(wire.KindCancel, 3, nil) // skipped by the client, as it may
	p.Send(wire.KindOpen, 9, []byte{byte(wire.OpEcho), 'y'})
	if stream, payload := p.Until(wire.KindDone); stream != 9 || string(payload) != "y" {
		t.Errorf("stream %d: %q", stream, payload)
	}
	p.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A malformed request fails that request, and no other.
func TestMalformedRequests(t *testing.T) {
	p, served := serve(t, t.Context(), server.Config{Files: &guesttest.Files{}, Runner: &guesttest.Runner{}})
	p.SayHello()
	long := strings.Repeat("p", wire.MaxPath+1)
	stream := uint64(0)
	for name, c := range map[string]struct {
		payload []byte
		want    error
	}{
		"nothing":              {nil, errors.ErrUnsupported},
		"operation zero":       {[]byte{0}, errors.ErrUnsupported},
		"operation 255":        {[]byte{255}, errors.ErrUnsupported},
		"no path":              {[]byte{byte(wire.OpStat)}, fs.ErrInvalid},
		"path cut short":       {[]byte{byte(wire.OpStat), 10, 'a'}, fs.ErrInvalid},
		"path too long":        {path(wire.OpStat, long), fs.ErrInvalid},
		"more than a path":     {append(path(wire.OpStat, "a"), 0), fs.ErrInvalid},
		"length of 2^64":       {[]byte{byte(wire.OpStat), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, fs.ErrInvalid},
		"window too large":     {open(wire.OpRead, wire.ReadRequest{Path: "a", Window: wire.MaxWindow + 1}), fs.ErrInvalid},
		"bool of 7":            {append(path(wire.OpMkdir, "a"), 7, 0), fs.ErrInvalid},
		"a million arguments":  {[]byte{byte(wire.OpExec), 0xc0, 0x84, 0x3d}, fs.ErrInvalid},
		"arguments missing":    {[]byte{byte(wire.OpExec), 0xff, 0x7f, 0}, fs.ErrInvalid},
		"terminal of 70,000":   {[]byte{byte(wire.OpResize), 1, 0xf0, 0xa2, 0x04, 1}, fs.ErrInvalid},
		"path with NUL":        {path(wire.OpStat, "a\x00b"), fs.ErrNotExist}, // the bridge's business
		"unknown command":      {open(wire.OpExec, wire.ExecRequest{Spec: proc.Spec{Argv: []string{"x"}}}), fs.ErrNotExist},
		"signal to nobody":     {open(wire.OpSignal, wire.SignalRequest{Stream: 999}), nil},
		"sweep without one":    {open(wire.OpSweep, wire.SweepRequest{}), errors.ErrUnsupported},
		"call without handler": {open(wire.OpCall, wire.CallRequest{Method: "m"}), errors.ErrUnsupported},
		"content beyond limit": {open(wire.OpCreate, wire.ContentRequest{Path: "a", Size: 1 << 50}), fsbridge.ErrTooLarge},
		"content of 2^63":      {open(wire.OpAppend, wire.ContentRequest{Path: "a", Size: -1}), fs.ErrInvalid},
		"range beyond limit":   {open(wire.OpReadRange, wire.RangeRequest{Path: "a", N: 1 << 50}), fsbridge.ErrTooLarge},
	} {
		stream++
		p.Send(wire.KindOpen, stream, c.payload)
		got, payload := p.Until(wire.KindFail)
		if err := failure(t, payload); got != stream || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: stream %d: %v, want %v", name, got, err, c.want)
		}
	}
	p.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// More calls than permitted are refused one by one; the others go on.
func TestTooManyCalls(t *testing.T) {
	release := make(chan struct{})
	files := &guesttest.Files{Hook: func(ctx context.Context, _, _ string) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx.Err()
	}}
	p, served := serve(t, t.Context(), server.Config{Files: files, Limits: server.Limits{Streams: 10}})
	p.SayHello()
	for i := range uint64(12) {
		p.Send(wire.KindOpen, i+1, path(wire.OpHash, "f"))
	}
	for range 2 {
		stream, payload := p.Until(wire.KindFail)
		if err := failure(t, payload); stream < 11 || !strings.Contains(err.Error(), "more than 10 calls") {
			t.Errorf("stream %d: %v", stream, err)
		}
	}
	close(release)
	for range 10 {
		if stream, _ := p.Until(wire.KindFail); stream > 10 { // there is no file
			t.Errorf("stream %d", stream)
		}
	}
	p.Close()
	if err := guesttest.Within(t, "Serve returns", served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A client that asks and never reads is given up, not waited for with ever more
// answers in memory.
func TestClientThatDoesNotRead(t *testing.T) {
	files := &guesttest.Files{Hook: func(ctx context.Context, _, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	p, served := serve(t, t.Context(), server.Config{Files: files, Limits: server.Limits{Streams: 1}})
	p.SayHello()
	over := make(chan struct{})
	go func() {
		defer close(over)
		request := path(wire.OpHash, "f")
		for i := uint64(1); p.Send(wire.KindOpen, i, request); i++ { // until it is cut
		}
	}()
	err := guesttest.Within(t, "Serve returns", served)
	if !errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), "does not read its answers") {
		t.Errorf("Serve: %v", err)
	}
	<-over
}

// A peer that greets wrongly, late or not at all is sent away.
func TestHandshake(t *testing.T) {
	greeting := func(h wire.Hello) []byte { return h.Append(nil) }
	for name, c := range map[string]struct {
		does func(p *guesttest.Peer)
		want string
		is   error
	}{
		"other version": {func(p *guesttest.Peer) {
			p.Send(wire.KindHello, 0, greeting(wire.Hello{Protocol: 7, Build: "v7"}))
		}, `protocol 7 (build "v7")`, nil},
		"another frame": {func(p *guesttest.Peer) { p.Send(wire.KindOpen, 1, nil) }, "open frame where hello was due", wire.ErrProtocol},
		"wrong stream":  {func(p *guesttest.Peer) { p.Send(wire.KindHello, 1, greeting(wire.Hello{Protocol: 1})) }, "hello frame", wire.ErrProtocol},
		"malformed":     {func(p *guesttest.Peer) { p.Send(wire.KindHello, 0, []byte{1}) }, "malformed", wire.ErrProtocol},
		"too long":      {func(p *guesttest.Peer) { p.Send(wire.KindHello, 0, make([]byte, wire.MaxHello)) }, "at most 65536", wire.ErrProtocol},
		"silent":        {func(*guesttest.Peer) {}, "no hello within 50ms", nil},
		"hangs up":      {func(p *guesttest.Peer) { p.Close() }, "", nil},
		"half a hello":  {func(p *guesttest.Peer) { p.Greeting(); p.Write([]byte{0, 0}); p.Close() }, "unexpected EOF", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			p, served := serve(t, t.Context(), server.Config{Build: "v1", Limits: server.Limits{Handshake: 50 * time.Millisecond}})
			c.does(p)
			err := guesttest.Within(t, "Serve returns", served)
			if c.want == "" {
				if err != nil {
					t.Errorf("Serve: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Serve: %v, want %q", err, c.want)
			}
		})
	}
	var other *wire.VersionError
	p, served := serve(t, t.Context(), server.Config{Build: "v1"})
	p.Send(wire.KindHello, 0, greeting(wire.Hello{Protocol: 7, Build: "v7"}))
	if err := guesttest.Within(t, "Serve returns", served); !errors.As(err, &other) ||
		other.Host != (wire.Peer{Protocol: 7, Build: "v7"}) || other.Guest != (wire.Peer{Protocol: wire.Version, Build: "v1"}) {
		t.Errorf("Serve: %v", err)
	}
}
