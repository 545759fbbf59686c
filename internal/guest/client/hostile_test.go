package client_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

func credit(channel uint8, n uint64) []byte { return binary.AppendUvarint([]byte{channel}, n) }

func data(channel uint8, n int) []byte { return append([]byte{channel}, make([]byte, n)...) }

// A helper that breaks the protocol loses the connection, whatever it does; the
// call under way gets an error that says so, and nothing hangs or is allocated
// beyond what was sent.
func TestHostileFrames(t *testing.T) {
	raw := func(b string) func(p *guesttest.Peer, stream uint64) {
		return func(p *guesttest.Peer, _ uint64) { p.Write([]byte(b)) }
	}
	frame := func(kind wire.Kind, payload []byte) func(p *guesttest.Peer, stream uint64) {
		return func(p *guesttest.Peer, stream uint64) { p.Send(kind, stream, payload) }
	}
	for name, c := range map[string]struct {
		does func(p *guesttest.Peer, stream uint64)
		want string
	}{
		"frame of 4 GiB":         {raw("\xff\xff\xff\xff\x03\x00\x00\x00\x00\x00\x00\x00\x01"), "at most 1048576"},
		"frame just too long":    {raw("\x00\x10\x00\x01\x03\x00\x00\x00\x00\x00\x00\x00\x01"), "at most 1048576"},
		"frame without a header": {raw("\x00\x00\x00\x08\x03\x00\x00\x00\x00\x00\x00\x00\x01"), "shorter than its header"},
		"empty frame":            {raw("\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01"), "shorter than its header"},
		"kind zero":              {raw("\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "unknown kind 0"},
		"kind beyond":            {raw("\x00\x00\x00\x09\x0a\x00\x00\x00\x00\x00\x00\x00\x01"), "unknown kind 10"},
		"text":                   {raw("Segmentation fault\n (core dumped)"), "at most 1048576"},
		"frame for nobody":       {func(p *guesttest.Peer, s uint64) { p.Send(wire.KindDone, s+1, nil) }, "not open"},
		"data for nobody":        {func(p *guesttest.Peer, s uint64) { p.Send(wire.KindData, s+1, data(1, 10)) }, "not open"},
		"frame for stream zero":  {func(p *guesttest.Peer, _ uint64) { p.Send(wire.KindDone, 0, nil) }, "not open"},
		"frame for the last stream": {func(p *guesttest.Peer, _ uint64) {
			p.Send(wire.KindDone, math.MaxUint64, nil)
		}, "not open"},
		"hello again":           {frame(wire.KindHello, nil), "hello frame from a server"},
		"open":                  {frame(wire.KindOpen, []byte{byte(wire.OpEcho)}), "open frame from a server"},
		"cancel":                {frame(wire.KindCancel, nil), "cancel frame from a server"},
		"data for input":        {frame(wire.KindData, data(0, 10)), "takes none"},
		"data for channel 3":    {frame(wire.KindData, data(3, 10)), "takes none"},
		"data without channel":  {frame(wire.KindData, nil), "takes none"},
		"end of channel 9":      {frame(wire.KindEnd, []byte{9}), "does not exist"},
		"end without channel":   {frame(wire.KindEnd, nil), "does not exist"},
		"end with more":         {frame(wire.KindEnd, []byte{1, 2, 3}), "does not exist"},
		"credit overflow":       {frame(wire.KindCredit, credit(0, wire.MaxWindow)), "at most 16777216 are allowed"},
		"credit of 2^63":        {frame(wire.KindCredit, credit(0, 1<<63)), "at most 16777216 is allowed"},
		"credit for output":     {frame(wire.KindCredit, credit(1, 1)), "credit for a channel that does not exist"},
		"credit without number": {frame(wire.KindCredit, []byte{0}), "malformed number"},
		"credit without end":    {frame(wire.KindCredit, []byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), "malformed number"},
		"credit with more":      {frame(wire.KindCredit, []byte{0, 1, 1}), "too many"},
		"data beyond credit": {func(p *guesttest.Peer, s uint64) {
			for range wire.StreamWindow/(64<<10) + 2 {
				p.Send(wire.KindData, s, data(1, 64<<10))
			}
		}, "with a credit of"},
		"data after end": {func(p *guesttest.Peer, s uint64) {
			p.Send(wire.KindEnd, s, []byte{1})
			p.Send(wire.KindData, s, data(1, 1))
		}, "after the end"},
		"two replies": {func(p *guesttest.Peer, s uint64) {
			for range 3 {
				p.Send(wire.KindReply, s, []byte{1})
			}
		}, "second reply"},
		"reply that is no number": {frame(wire.KindReply, []byte{0xff}), "malformed number"},
		"pid beyond":              {frame(wire.KindReply, binary.AppendUvarint(nil, 1<<40)), "at most 2147483647 is allowed"},
		"reply with more":         {frame(wire.KindReply, []byte{1, 2}), "too many"},
		"ended before started":    {frame(wire.KindDone, wire.AppendStatus(nil, proc.Status{})), "before it started"},
		"fail without an error":   {frame(wire.KindFail, nil), "malformed number"},
		"fail with wrong code":    {frame(wire.KindFail, []byte{1, 99}), "unknown error code 99"},
		"fail with many codes":    {frame(wire.KindFail, []byte{0xff, 0xff, 0x7f}), "at most"},
		"fail with more":          {frame(wire.KindFail, append(wire.AppendError(nil, errors.New("x")), 0)), "too many"},
		"done twice": {func(p *guesttest.Peer, s uint64) {
			p.Send(wire.KindReply, s, []byte{1})
			p.Send(wire.KindDone, s, wire.AppendStatus(nil, proc.Status{}))
			p.Send(wire.KindDone, s, wire.AppendStatus(nil, proc.Status{}))
		}, "not open"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
				stream, _ := p.Until(wire.KindOpen)
				c.does(p, stream)
				p.Drain()
			})
			spec := proc.Spec{Argv: []string{"true"}, Stdin: true}
			p, err := conn.Runner().Start(t.Context(), spec, proc.IO{Stdin: strings.NewReader(""), Stdout: blocked{t.Context().Done()}})
			guesttest.Within(t, "the connection ends", conn.Done())
			if err == nil {
				if status, _ := p.Wait(t.Context()); !status.Unknown && name != "done twice" {
					t.Errorf("status %+v", status)
				}
			} else if lost := (*client.LostError)(nil); !errors.As(err, &lost) || !lost.Sent {
				t.Errorf("error %v is no *LostError of a call that was sent", err)
			}
			if err := conn.Err(); !errors.Is(err, wire.ErrProtocol) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the connection ended with %v, want a violation that says %q", err, c.want)
			}
			if _, err := conn.Echo(t.Context(), []byte("x")); err == nil {
				t.Error("the connection is still in use")
			}
		})
	}
}

// blocked is a writer that takes nothing until the test is over.
type blocked struct{ done <-chan struct{} }

func (b blocked) Write(p []byte) (int, error) { <-b.done; return len(p), nil }

// Answers that cannot be true end the connection too.
func TestHostileAnswers(t *testing.T) {
	status := func(s proc.Status) []byte { return wire.AppendStatus(nil, s) }
	for name, c := range map[string]struct {
		op     wire.Op
		answer []byte
		call   func(t *testing.T, conn *client.Conn) error
	}{
		"echo differs": {wire.OpEcho, []byte("y"), func(t *testing.T, conn *client.Conn) error {
			_, err := conn.Echo(t.Context(), []byte("x"))
			return err
		}},
		"sweep of a negative number": {wire.OpSweep, binary.AppendVarint(nil, -1<<60), func(t *testing.T, conn *client.Conn) error {
			_, err := conn.Sweep(t.Context(), "tag")
			return err
		}},
		"termination of another kind": {wire.OpTerminate, []byte{7, 0, 0}, terminate},
		"gone with survivors":         {wire.OpTerminate, []byte{0, 1, 9, 0}, terminate},
		"a million survivors":         {wire.OpTerminate, []byte{1, 0xc0, 0x84, 0x3d}, terminate},
		"termination cut short":       {wire.OpTerminate, []byte{1}, terminate},
		"exit code 256":               {wire.OpExec, status(proc.Status{Code: 256}), run},
		"exit code -1":                {wire.OpExec, status(proc.Status{Code: -1}), run},
		"signal without its code":     {wire.OpExec, status(proc.Status{Signal: 9}), run},
		"signal 1000":                 {wire.OpExec, status(proc.Status{Code: 1128, Signal: 1000}), run},
		"unknown with a signal":       {wire.OpExec, status(proc.Status{Unknown: true, Code: 137, Signal: 9}), run},
		"status with more":            {wire.OpExec, append(status(proc.Status{}), 1), run},
	} {
		t.Run(name, func(t *testing.T) {
			conn := withPeer(t, client.Options{}, func(p *guesttest.Peer) {
				stream, payload := p.Until(wire.KindOpen)
				if wire.Op(payload[0]) != c.op {
					t.Errorf("operation %v, want %v", wire.Op(payload[0]), c.op)
				}
				if c.op == wire.OpExec {
					p.Send(wire.KindReply, stream, []byte{1})
				}
				p.Send(wire.KindDone, stream, c.answer)
				p.Drain()
			})
			err := c.call(t, conn)
			guesttest.Within(t, "the connection ends", conn.Done())
			if err == nil || !errors.Is(conn.Err(), wire.ErrProtocol) {
				t.Errorf("error %v, connection %v", err, conn.Err())
			}
		})
	}
}

func terminate(t *testing.T, conn *client.Conn) error {
	res, err := conn.Runner().Terminate(t.Context(), "marker", 0)
	if res.Outcome != proc.Unknown {
		return nil
	}
	return err
}

// run gives an error where the status is unknown.
func run(t *testing.T, conn *client.Conn) error {
	p, err := conn.Runner().Start(t.Context(), proc.Spec{Argv: []string{"true"}}, proc.IO{})
	if err != nil {
		return err
	}
	status, _ := p.Wait(t.Context())
	if !status.Unknown {
		return nil
	}
	return errors.New(status.Reason)
}
