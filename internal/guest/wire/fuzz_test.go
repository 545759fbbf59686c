package wire_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/workberth/workberth/internal/guest/wire"
)

// FuzzDecodeFrame reads frames from any bytes: what is accepted is exactly what was
// there, and nothing crashes.
func FuzzDecodeFrame(f *testing.F) {
	f.Add(frameBytes(wire.KindOpen, 1, []byte{1, 2, 3}))
	f.Add([]byte("\x00\x10\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wire.NewReader(bytes.NewReader(in))
		var out []byte
		for {
			fr, err := r.Next()
			if err != nil {
				if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, wire.ErrProtocol) {
					t.Fatalf("error %v", err)
				}
				if err == io.EOF && !bytes.Equal(in, out) {
					t.Fatalf("%d bytes were read as %d", len(in), len(out))
				}
				break
			}
			b, ok := fr.Bytes()
			if !ok {
				t.Fatal("a frame was read that may not be sent")
			}
			out = append(out, b...)
			fr.Release()
		}
		if !bytes.HasPrefix(in, out) {
			t.Fatal("what was read is not what was there")
		}
	})
}

// message decodes one kind of message, and encodes it again.
type message struct {
	name  string
	again func(d *wire.Decoder) (value any, encode func() []byte)
}

type appender interface{ Append(b []byte) []byte }

func request[T appender](take func(d *wire.Decoder) T) func(d *wire.Decoder) (any, func() []byte) {
	return func(d *wire.Decoder) (any, func() []byte) {
		v := take(d)
		return v, func() []byte { return v.Append(nil) }
	}
}

func value[T any](take func(d *wire.Decoder) T, put func(b []byte, v T) []byte) func(d *wire.Decoder) (any, func() []byte) {
	return func(d *wire.Decoder) (any, func() []byte) {
		v := take(d)
		return v, func() []byte { return put(nil, v) }
	}
}

func messages() []message {
	return []message{
		{"path", request((*wire.Decoder).PathRequest)},
		{"read", request((*wire.Decoder).ReadRequest)},
		{"range", request((*wire.Decoder).RangeRequest)},
		{"write", func(d *wire.Decoder) (any, func() []byte) {
			r := d.WriteRequest()
			return r, func() []byte { return append(r.Append(nil), r.Data...) }
		}},
		{"content", func(d *wire.Decoder) (any, func() []byte) {
			r := d.ContentRequest()
			return r, func() []byte { return append(r.Append(nil), r.Data...) }
		}},
		{"mkdir", request((*wire.Decoder).MkdirRequest)},
		{"remove", request((*wire.Decoder).RemoveRequest)},
		{"rename", request((*wire.Decoder).RenameRequest)},
		{"copy", request((*wire.Decoder).CopyRequest)},
		{"symlink", request((*wire.Decoder).SymlinkRequest)},
		{"chmod", request((*wire.Decoder).ChmodRequest)},
		{"list", request((*wire.Decoder).ListRequest)},
		{"walk", request((*wire.Decoder).WalkRequest)},
		{"glob", request((*wire.Decoder).GlobRequest)},
		{"watch", request((*wire.Decoder).WatchRequest)},
		{"exec", request((*wire.Decoder).ExecRequest)},
		{"signal", request((*wire.Decoder).SignalRequest)},
		{"resize", request((*wire.Decoder).ResizeRequest)},
		{"terminate", request((*wire.Decoder).TerminateRequest)},
		{"sweep", request((*wire.Decoder).SweepRequest)},
		{"call", request((*wire.Decoder).CallRequest)},
		{"info", value((*wire.Decoder).Info, wire.AppendInfo)},
		{"entry", value((*wire.Decoder).DirEntry, wire.AppendDirEntry)},
		{"step", value((*wire.Decoder).WalkEntry, wire.AppendWalkEntry)},
		{"event", value((*wire.Decoder).Event, wire.AppendEvent)},
		{"hash", value((*wire.Decoder).Hash, wire.AppendHash)},
		{"result", value((*wire.Decoder).WriteResult, wire.AppendWriteResult)},
		{"source", value((*wire.Decoder).Source, wire.AppendSource)},
		{"status", value((*wire.Decoder).Status, wire.AppendStatus)},
		{"termination", value((*wire.Decoder).TerminateResult, wire.AppendTerminateResult)},
		{"error", value((*wire.Decoder).Error, wire.AppendError)},
	}
}

// FuzzDecodeMessages decodes any bytes as any message. What is accepted can be
// encoded, and means the same then.
func FuzzDecodeMessages(f *testing.F) {
	all := messages()
	f.Add(byte(0), []byte{1, 'a'})
	f.Fuzz(func(t *testing.T, which byte, in []byte) {
		if int(which)%(len(all)+1) == len(all) {
			fuzzHello(t, in)
			return
		}
		m := all[int(which)%(len(all)+1)]
		d := wire.NewDecoder(in)
		first, encode := m.again(d)
		if err := d.Finish(); err != nil {
			if !errors.Is(err, wire.ErrProtocol) {
				t.Fatalf("%s: error %v", m.name, err)
			}
			return
		}
		out := encode()
		d = wire.NewDecoder(out)
		second, _ := m.again(d)
		if err := d.Finish(); err != nil {
			t.Fatalf("%s: % x was accepted and encoded as % x, which is not: %v", m.name, in, out, err)
		}
		if m.name == "error" || m.name == "step" {
			return // errors keep what they match, see TestErrorsMatchAcross
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%s: %+v became %+v", m.name, first, second)
		}
	})
}

func fuzzHello(t *testing.T, in []byte) {
	first, err := wire.DecodeHello(in)
	if err != nil || first.Protocol != wire.Version {
		return
	}
	second, err := wire.DecodeHello(first.Append(nil))
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Fatalf("hello: %+v became %+v, %v", first, second, err)
	}
}
