package containertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// ends are what others do to a container that runs, and what may be told of it.
func (k *kit) ends() map[string]func(id string) {
	ends := map[string]func(id string){
		"stop":    k.stopped,
		"kill":    func(id string) { k.must(k.engine.Kill(k.ctx, id)) },
		"term":    func(id string) { k.api(http.MethodPost, "/containers/"+id+"/kill?signal=TERM") },
		"restart": func(id string) { k.api(http.MethodPost, "/containers/"+id+"/restart?t=5") },
		"remove":  func(id string) { k.must(k.engine.Remove(k.ctx, id)) },
	}
	if k.pauses() {
		ends["pause, kill"] = func(id string) {
			k.pause(id)
			k.must(k.engine.Kill(k.ctx, id))
		}
	}
	return ends
}

// pauses reports whether the engine can: without a control group it cannot.
func (k *kit) pauses() bool {
	k.Helper()
	about, err := k.engine.Describe(k.ctx)
	k.must(err)
	return !about.Rootless || about.CgroupVersion == "2"
}

func (k *kit) pause(id string)   { k.api(http.MethodPost, "/containers/"+id+"/pause") }
func (k *kit) unpause(id string) { k.api(http.MethodPost, "/containers/"+id+"/unpause") }

// caseUsedAfter: whatever has ended a container, the next use has it again within seconds, with the
// files of the workspace. C053
func caseUsedAfter(k *kit) {
	for name, end := range k.ends() {
		sb := k.ensure(k.b)
		br, err := sb.Bridge(k.ctx, nil)
		k.must(err)
		k.must(br.WriteFile(k.ctx, "f", []byte(name)))
		end(k.containerOf(sb).ID)
		k.ended(sb)
		k.within(10*time.Second, "the next use after "+name, func() {
			sb = k.ensure(k.b)
			br, err := sb.Bridge(k.ctx, nil)
			k.must(err)
			if got, err := br.ReadFile(k.ctx, "f"); err != nil || string(got) != name {
				k.Errorf("%s: read %q, %v", name, got, err)
			}
			k.wantOutput(sb, "cat f", name)
		})
		k.must(sb.Close())
	}
}

// caseStartedBySomebody: a container that somebody has started by hand, while nobody holds its sandbox,
// is no obstacle and runs nothing of its own. C053
func caseStartedBySomebody(k *kit) {
	sb := k.ensure(k.b)
	id := k.containerOf(sb).ID
	for _, wait := range []bool{false, true} {
		k.must(sb.Close())
		k.must(k.engine.Start(k.ctx, id))
		if wait {
			k.must(ignore(k.engine.Wait(k.ctx, id))) // without an owner it ends by itself
		}
		k.within(10*time.Second, "the next use", func() { sb = k.ensure(k.b) })
		k.wantOutput(sb, "echo on", "on")
	}
	// Beside a live one nothing else comes in.
	k.must(k.engine.Start(k.ctx, id))
	k.wantOutput(sb, "echo on", "on")
	// What was written in an earlier life explains no later end.
	k.must(sb.Close())
	time.Sleep(1500 * time.Millisecond) //sleep: of the second before its start all is told
	sb = k.ensure(k.b)
	k.must(k.engine.Kill(k.ctx, id))
	if reason := k.ended(sb); strings.Contains(reason, "last lines") {
		k.Errorf("reason: %s", reason)
	}
}

// caseEndedUnseen: a container that ends while its engine does not answer ends the sandbox all the
// same; the reason is told when the engine is back. C053 C063
func caseEndedUnseen(k *kit) {
	gate := newGate(k)
	b := k.openAt("gated", gate.address)
	sb := k.ensure(b)
	s := k.start(sb, "exec sleep 600")
	gate.close()
	k.must(k.engine.Kill(k.ctx, k.containerOf(sb).ID))
	gate.open(k)
	if reason := k.ended(sb); !strings.Contains(reason, "signal 9") {
		k.Errorf("reason: %s", reason)
	}
	if out, status := k.end(s); out != "start\n" || !status.Unknown || !strings.Contains(status.Reason, "signal 9") {
		k.Errorf("the command: %q, %+v", out, status)
	}
	k.wantOutput(k.ensure(b), "echo on", "on")
}

// caseUnderCommand: a command whose container ends under it keeps its output; its end is neither
// success nor a bare number. C063
func caseUnderCommand(k *kit) {
	for name, end := range k.ends() {
		sb := k.ensure(k.b)
		s := k.start(sb, "sleep 600; echo end")
		k.within(20*time.Second, name, func() {
			end(k.containerOf(sb).ID)
			out, status := k.end(s)
			told := strings.Contains(status.Reason, "container") || strings.Contains(status.Reason, "sandbox")
			if out != "start\n" || !status.Unknown || status.Code == 0 && status.Reason == "" || !told {
				k.Errorf("%s: %q, %+v", name, out, status)
			}
		})
		k.ended(sb)
		if n := sb.OpenTokens(); n != 0 {
			k.Errorf("%s: %d open tokens", name, n)
		}
	}
	// The command ends what it lives in: with the container's first process everything ends.
	sb := k.ensure(k.b)
	res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "kill -9 -1; sleep 600"}}, nil, sandbox.RunOptions{Timeout: time.Minute})
	if err == nil && (res.Status == (sandbox.ExitStatus{}) || res.TimedOut) || err != nil && !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("kill -9 -1: %+v, %v", res.Status, err)
	}
	k.wantOutput(k.ensure(k.b), "echo on", "on")
}

// half gives a part, then waits, then gives the rest.
type half struct {
	io.Reader
	given   chan struct{}
	proceed chan struct{}
	once    sync.Once
	rest    io.Reader
}

func newHalf(size int) *half {
	data := bytes.Repeat([]byte("x"), size)
	return &half{Reader: bytes.NewReader(data), given: make(chan struct{}), proceed: make(chan struct{}), rest: bytes.NewReader(data)}
}

func (h *half) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	h.once.Do(func() { close(h.given) })
	<-h.proceed
	return h.rest.Read(p)
}

// caseUnderWrite: a write whose container ends under it fails, the old file stays whole, and nothing
// half-written is left once the sandbox is used again. C063
func caseUnderWrite(k *kit) {
	for name, end := range k.ends() {
		k.must(os.WriteFile(filepath.Join(k.ws, "f"), []byte("old"), 0o644))
		sb := k.ensure(k.b)
		br, err := sb.Bridge(k.ctx, nil)
		k.must(err)
		content := newHalf(3 << 20)
		done := make(chan error, 1)
		go func() {
			_, err := fsbridge.WriteStream(k.ctx, br, "f", content, fsbridge.WriteOptions{})
			done <- err
		}()
		<-content.given
		end(k.containerOf(sb).ID)
		k.ended(sb)
		close(content.proceed)
		if err := <-done; err == nil {
			k.Errorf("%s: the write has succeeded", name)
		}
		if got := k.read(filepath.Join(k.ws, "f")); got != "old" {
			k.Errorf("%s: the file has %d bytes, want the old ones", name, len(got))
		}
		sb = k.ensure(k.b)
		k.noTemporaries()
		k.must(sb.Close())
	}
}

// caseUnderRead: a read whose container ends under it never passes half a file off for a whole one. C063
func caseUnderRead(k *kit) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	k.must(os.WriteFile(filepath.Join(k.ws, "big"), content, 0o644))
	for name, end := range k.ends() {
		sb := k.ensure(k.b)
		br, err := sb.Bridge(k.ctx, nil)
		k.must(err)
		r, info, err := fsbridge.OpenReader(k.ctx, br, "big")
		k.must(err)
		var got bytes.Buffer
		_, err = io.CopyN(&got, r, 1000)
		k.must(err)
		end(k.containerOf(sb).ID)
		k.ended(sb)
		_, err = io.Copy(&got, r)
		if err == nil && !bytes.Equal(got.Bytes(), content) || !bytes.HasPrefix(content, got.Bytes()) || info.Size != int64(len(content)) {
			k.Errorf("%s: %d of %d bytes, %v", name, got.Len(), len(content), err)
		}
		_ = r.Close()
	}
}

// casePausedUnder: somebody pauses a container under a command, a read and a write. What has a bound
// keeps it; when it goes on so does everything, unless it was given up. C063 C075
func casePausedUnder(k *kit) {
	if !k.pauses() {
		k.Skip("the engine has no control group to freeze processes by")
	}
	sb := k.ensure(k.b)
	c := k.containerOf(sb)
	br, err := sb.Bridge(k.ctx, nil)
	k.must(err)
	k.must(br.WriteFile(k.ctx, "f", []byte("old")))
	s := k.start(sb, "while [ ! -e go ]; do sleep 0.1; done; echo went on")
	k.pause(c.ID)
	k.within(5*time.Second, "a read with a bound", func() {
		ctx, cancel := context.WithTimeout(k.ctx, 500*time.Millisecond)
		defer cancel()
		if _, err := br.ReadFile(ctx, "f"); !errors.Is(err, context.DeadlineExceeded) {
			k.Errorf("read while paused: %v", err)
		}
		if err := br.WriteFile(ctx, "f", []byte("new")); err == nil {
			k.Error("wrote while paused")
		}
	})
	k.must(os.WriteFile(filepath.Join(k.ws, "go"), nil, 0o644))
	k.unpause(c.ID)
	if out, status := k.end(s); out != "start\nwent on\n" || status != (sandbox.ExitStatus{}) {
		k.Errorf("the command that was paused: %q, %+v", out, status)
	}
	k.wantOutput(sb, "echo on", "on")
	// A command's time goes on, and so does what comes after it.
	s = k.start(sb, "exec sleep 600")
	k.pause(c.ID)
	k.within(time.Minute, "giving a paused sandbox back", func() { k.must(sb.Close()) })
	if out, status := k.end(s); out != "start\n" || !status.Unknown {
		k.Errorf("the command in a closed sandbox: %q, %+v", out, status)
	}
	if c, err := k.engine.Inspect(k.ctx, c.ID); err != nil || c.Status != container.StatusExited {
		k.Errorf("closed while paused: %+v, %v", c, err)
	}
	k.wantOutput(k.ensure(k.b), "echo on", "on")
}
