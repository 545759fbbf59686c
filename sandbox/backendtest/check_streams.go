package backendtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/workberth/workberth/sandbox"
)

func streamChecks() []check {
	return []check{
		{name: "stdin", rows: []string{"C065"}, run: streamStdin},
		{name: "failing-stdin", rows: []string{"C065"}, run: streamFailingStdin},
		{name: "big-stdin", rows: []string{"C065"}, run: streamBigStdin},
		{name: "unread-stdin", rows: []string{"C065"}, run: streamUnreadStdin},
		{name: "complete", rows: []string{"C067"}, run: streamComplete},
		{name: "slow-reader", rows: []string{"C067"}, run: streamSlowReader},
		{name: "bytes", rows: []string{"C069"}, run: streamBytes},
		{name: "failing-writer", run: streamFailingWriter},
	}
}

// pattern is what the role "emit" writes.
func pattern(size int) []byte {
	p := make([]byte, size)
	for i := range p {
		p[i] = byte('!' + i%89)
	}
	return p
}

// streamStdin: the end of standard input reaches the command.
func streamStdin(k *kit) {
	x := k.ensure()
	for name, tc := range map[string]struct {
		stdin io.Reader
		args  []string
		want  string
	}{
		"text":      {strings.NewReader("hello"), []string{"count"}, "5"},
		"nothing":   {strings.NewReader(""), []string{"count"}, "0"},
		"none":      {nil, []string{"count"}, "0"},
		"there":     {strings.NewReader("\x00\xff\n\r\x1a"), []string{"cat"}, "\x00\xff\n\r\x1a"},
		"by bytes":  {iotest.OneByteReader(strings.NewReader("byte by byte")), []string{"cat"}, "byte by byte"},
		"with EOF":  {iotest.DataErrReader(strings.NewReader("data and end")), []string{"cat"}, "data and end"},
		"no reader": {nil, []string{"cat"}, ""},
	} {
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role(tc.args...), nil, sandbox.RunOptions{Stdin: tc.stdin})
		if err != nil || res.Status.Code != 0 || string(res.Stdout.Bytes()) != tc.want {
			k.Errorf("%s: %q, %+v, %v; want %q", name, res.Stdout.Bytes(), res.Status, err, tc.want)
		}
	}
	// A reader is not used when the command says that it has none.
	spec, err := x.BuildExecSpec(k.ctx, x.role("count"), nil)
	k.must(err)
	buf := sandbox.NewOutputBuffer(100)
	p, err := spec.Spawn(k.ctx, sandbox.IO{Stdin: strings.NewReader("not for you"), Stdout: buf})
	k.must(err)
	_, err = p.Wait(k.ctx)
	k.must(err)
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeExited))
	if got := string(buf.Output().Bytes()); got != "0" {
		k.Errorf("a command without standard input read %q bytes", got)
	}
}

// streamFailingStdin: half an input must not pass for a whole one.
func streamFailingStdin(k *kit) {
	x := k.ensure()
	boom := errors.New("disk on fire")
	stdin := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom))
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("count"), nil, sandbox.RunOptions{Stdin: stdin})
	if err != nil {
		k.Fatalf("Run: %v", err)
	}
	if !errors.Is(res.StreamErr, boom) || res.Status == (sandbox.ExitStatus{}) || len(res.Stdout.Bytes()) > 0 {
		k.Errorf("result %+v, output %q: the command took half an input for a whole one", res, res.Stdout.Bytes())
	}
	// The backend does its part by itself.
	cmd := x.role("count")
	cmd.Stdin = true
	spec, err := x.BuildExecSpec(k.ctx, cmd, nil)
	k.must(err)
	buf := sandbox.NewOutputBuffer(100)
	p, err := spec.Spawn(k.ctx, sandbox.IO{Stdin: io.MultiReader(strings.NewReader("half"), iotest.ErrReader(boom)), Stdout: buf})
	k.must(err)
	status, err := p.Wait(k.ctx)
	k.must(x.FinalizeExec(k.ctx, spec.Token, sandbox.OutcomeExited))
	if got := string(buf.Output().Bytes()); got != "" || err == nil && status == (sandbox.ExitStatus{}) {
		k.Errorf("status %+v, %v, output %q: the command took half an input for a whole one", status, err, got)
	}
	x.works()
}

// streamBigStdin sends 16 MiB through.
func streamBigStdin(k *kit) {
	x := k.ensure()
	data := bytes.Repeat(pattern(1<<20), k.rounds(16, 4))
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("digest"), nil, sandbox.RunOptions{Stdin: bytes.NewReader(data)})
	if err != nil || string(res.Stdout.Bytes()) != want {
		k.Errorf("digest %q, %+v, %v; want %s", res.Stdout.Bytes(), res.Status, err, want)
	}
	res, err = sandbox.Run(k.ctx, x.Sandbox, x.role("cat"), nil, sandbox.RunOptions{Stdin: bytes.NewReader(data), OutputLimit: 32 << 20})
	if err != nil || !bytes.Equal(res.Stdout.Bytes(), data) {
		k.Errorf("%d bytes came back, %d were sent; %+v, %v", res.Stdout.Total, len(data), res.Status, err)
	}
}

// streamUnreadStdin: a command that does not read ends all the same, with its own status.
func streamUnreadStdin(k *kit) {
	x := k.ensure()
	data := bytes.Repeat([]byte("x"), 4<<20)
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("exit", "7"), nil, sandbox.RunOptions{Stdin: bytes.NewReader(data)})
	if err != nil || res.Status.Code != 7 || res.StreamErr != nil {
		k.Errorf("result %+v, %v", res, err)
	}
}

// streamComplete: all output arrives, every time, with the right exit code.
func streamComplete(k *kit) {
	x := k.ensure()
	for i := range k.rounds(50, 10) {
		size, code, block := 500003, 0, "7"
		switch i % 3 {
		case 1:
			size, code, block = 70001, 3, "70001"
		case 2:
			size, code, block = 500003, 0, "4093"
		}
		if block == "7" && testing.Short() {
			block = "101"
		}
		var live bytes.Buffer
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("emit", fmt.Sprint(size), fmt.Sprint(size/2), fmt.Sprint(code), block), nil, sandbox.RunOptions{Stdout: &live})
		if err != nil || res.Status.Code != code {
			k.Fatalf("round %d: %+v, %v", i, res.Status, err)
		}
		if !bytes.Equal(res.Stdout.Bytes(), pattern(size)) || !bytes.Equal(res.Stderr.Bytes(), pattern(size/2)) || !bytes.Equal(live.Bytes(), pattern(size)) {
			k.Fatalf("round %d: %d and %d bytes, %d live; want %d and %d, exact", i, res.Stdout.Total, res.Stderr.Total, live.Len(), size, size/2)
		}
	}
}

// streamSlowReader: who reads slowly loses nothing, and holds up nobody else.
func streamSlowReader(k *kit) {
	x := k.ensure()
	var got bytes.Buffer
	release := make(chan struct{})
	first := true
	slow := writerFunc(func(p []byte) (int, error) {
		if first {
			<-release // until others have been served
			first = false
		}
		return got.Write(p)
	})
	size := 8 << 20
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("emit", fmt.Sprint(size)), nil, sandbox.RunOptions{Stdout: slow})
		if err != nil || res.Status.Code != 0 {
			k.Errorf("slow: %+v, %v", res.Status, err)
		}
	}()
	for range 5 {
		x.works()
	}
	close(release)
	<-done
	if !bytes.Equal(got.Bytes(), pattern(size)) {
		k.Errorf("%d bytes arrived, want %d exactly", got.Len(), size)
	}
}

// streamBytes: outputs that look like frames, with and without a terminal.
func streamBytes(k *kit) {
	x := k.ensure()
	for _, text := range []string{
		"abcdefghijkl", "abcdefgh", "a", "\x01\x00\x00\x00\x00\x00\x00\x05", "\x01\x00\x00\x00\x00\x00\x00\x05hello",
		"\x02\x00\x00\x00\x00\x00\x00\x03\x01\x00\x00\x00\x00\x00\x00\x05", "\x00\x00\x00\x08\x01\x00\x00\x00\x01",
	} {
		res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("print", fmt.Sprintf("%q", text), fmt.Sprintf("%q", text)), nil, sandbox.RunOptions{})
		if err != nil || string(res.Stdout.Bytes()) != text || string(res.Stderr.Bytes()) != text || res.Status != (sandbox.ExitStatus{}) {
			k.Errorf("%q: %q and %q, %+v, %v", text, res.Stdout.Bytes(), res.Stderr.Bytes(), res.Status, err)
		}
		if !k.features.TTY {
			continue
		}
		cmd := x.role("print", fmt.Sprintf("%q", text))
		cmd.TTY = &sandbox.TTYSize{Rows: 24, Cols: 80}
		res, err = sandbox.Run(k.ctx, x.Sandbox, cmd, nil, sandbox.RunOptions{})
		if err != nil || string(res.Stdout.Bytes()) != text || len(res.Stderr.Bytes()) > 0 || res.Status != (sandbox.ExitStatus{}) {
			k.Errorf("%q on a terminal: %q, %+v, %v", text, res.Stdout.Bytes(), res.Status, err)
		}
	}
}

// streamFailingWriter: an endless command whose output nobody takes any more is ended.
func streamFailingWriter(k *kit) {
	x := k.ensure()
	boom := errors.New("closed")
	n := 0
	res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("endless"), nil, sandbox.RunOptions{
		Stdout: writerFunc(func(p []byte) (int, error) {
			if n++; n > 3 {
				return 0, boom
			}
			return len(p), nil
		}),
		Timeout: time.Minute,
	})
	if err != nil || !errors.Is(res.StreamErr, boom) || res.TimedOut {
		k.Errorf("result %+v, %v", res.Status, err)
	}
	x.works()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
