//go:build linux

package reaper

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

func connPair(t testing.TB) (a, b *conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []**conn{&a, &b} {
		if *c, err = newConn(fds[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*c).Close() })
	}
	return a, b
}

// Messages of any size arrive whole, in order, with their files.
func TestConn(t *testing.T) {
	a, b := connPair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sizes := []int{0, 1, 100, 1 << 16, 3 << 20}
	go func() {
		for i, n := range sizes {
			fd, err := descriptor(w)
			if err == nil && i%2 == 0 {
				err = a.send(message(i), bytes.Repeat([]byte{byte(i)}, n), fd, fd)
			} else if err == nil {
				err = a.send(message(i), bytes.Repeat([]byte{byte(i)}, n))
			}
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		_ = a.Close()
		_ = w.Close()
	}()
	for i, n := range sizes {
		kind, payload, fds, err := b.recv(maxSpec)
		if err != nil || kind != message(i) || !bytes.Equal(payload, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Fatalf("message %d: kind %d, %d bytes, %v", i, kind, len(payload), err)
		}
		if want := 2 * ((i + 1) % 2); len(fds) != want {
			t.Errorf("message %d came with %d files, want %d", i, len(fds), want)
		}
		for _, fd := range fds {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("a received file is inherited by commands (flags %d, %v)", flags, err)
			}
		}
		closeFDs(fds)
	}
	if _, _, _, err := b.recv(maxSpec); err != io.EOF {
		t.Errorf("at the end: %v, want EOF", err)
	}
	if b.alive() {
		t.Error("a closed connection is alive, it says")
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a file was not closed: %v", err)
	}
}

// A message that is too large or cut is refused.
func TestConnRefuses(t *testing.T) {
	a, b := connPair(t)
	if !b.alive() {
		t.Error("an open connection is not alive, it says")
	}
	if err := a.send(1, make([]byte, 101)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.recv(100); err == nil {
		t.Error("a message above the limit was taken")
	}
	a, b = connPair(t)
	if _, err := a.f.Write([]byte{0, 0, 0, 9, 1, 'x'}); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	if _, _, _, err := b.recv(100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut message: %v", err)
	}
	a, b = connPair(t)
	if _, err := a.f.Write([]byte{0, 0}); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	if _, _, _, err := b.recv(100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut header: %v", err)
	}
}

// Every message survives the journey.
func TestMessages(t *testing.T) {
	spec := proc.Spec{
		Argv: []string{"a", "", "\xff"}, Env: []string{"A=b"}, Dir: "d", TTY: &proc.Size{Rows: 1, Cols: 2}, Stdin: true,
		Limits: proc.Limits{OpenFiles: 1, FileSize: 2, AddressSpace: 3, Processes: 4, CPUSeconds: 5, CoreFileBytes: 6},
		Marker: "m", KeepDescendants: true, Grace: -time.Second,
	}
	if got, err := decodeStart(startOrder{9, spec}.append(nil)); err != nil || got.turn != 9 || !reflect.DeepEqual(got.spec, spec) {
		t.Errorf("startOrder: %+v, %v", got, err)
	}
	f := startFailure{proc.NoCommand, "what", syscall.ENOENT, "detail"}
	if got, err := decodeFailure(f.append(nil)); err != nil || got != f {
		t.Errorf("startFailure: %+v, %v", got, err)
	}
	o := terminateOrder{6, 7, -5}
	if got, err := decodeTerminate(o.append(nil)); err != nil || got != o {
		t.Errorf("terminateOrder: %+v, %v", got, err)
	}
	g := signalOrder{5, -9}
	if got, err := decodeSignal(g.append(nil)); err != nil || got != g {
		t.Errorf("signalOrder: %+v, %v", got, err)
	}
	r := terminated{8, proc.TerminateResult{Outcome: proc.Survivors, Pids: []int{1, 2}, Killed: 3}}
	if got, err := decodeTerminated(r.append(nil)); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("terminated: %+v, %v", got, err)
	}
	for _, n := range []int{0, -1, 1 << 30} {
		if got, err := decodeNumber(appendNumber(nil, n)); err != nil || got != n {
			t.Errorf("number: %d, %v", got, err)
		}
	}
}

// No bytes a reaper, or who took its place, can send do more than fail.
func FuzzHear(f *testing.F) {
	f.Add(byte(msgStarted), appendNumber(nil, 5))
	f.Add(byte(msgFailed), startFailure{proc.NoCommand, "x", 2, "d"}.append(nil))
	f.Add(byte(msgExited), []byte{0, 0, 0, 0, 0})
	f.Add(byte(msgTerminated), terminated{1, proc.TerminateResult{Outcome: proc.Gone}}.append(nil))
	f.Add(byte(msgGone), []byte(nil))
	f.Add(byte(msgForking), []byte(nil))
	f.Add(byte(0), []byte("x"))
	f.Fuzz(func(_ *testing.T, kind byte, payload []byte) {
		c := newCommand(nil, proc.Spec{Argv: []string{"x"}}, nil, proc.IO{})
		for range 2 { // also what may come only once
			_, _ = c.hear(message(kind), payload)
		}
	})
}

// Nor any bytes a reaper takes for its order.
func FuzzDecodeOrders(f *testing.F) {
	f.Add(startOrder{1, proc.Spec{Argv: []string{"x"}}}.append(nil))
	f.Add(terminateOrder{1, 2, 3}.append(nil))
	f.Fuzz(func(_ *testing.T, payload []byte) {
		_, _ = decodeStart(payload)
		_, _ = decodeTerminate(payload)
		_, _ = decodeSignal(payload)
	})
}
