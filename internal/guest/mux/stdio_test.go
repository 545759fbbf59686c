//go:build linux

package mux_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/mux"
)

// stdioChild takes over its standard streams, tells what is in their place and
// whether a read can be interrupted, and echoes the rest.
func stdioChild() int {
	conn, err := mux.Stdio()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for fd := range 2 {
		where, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		fmt.Fprintf(conn, "%d: %s %v\n", fd, where, err)
	}
	fmt.Println("this goes nowhere")
	if _, err := io.Copy(conn, conn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// After Close nobody holds the other ends any more.
	if err := conn.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Over pipes and sockets, the streams are carried and nothing is left in their place.
func TestStdio(t *testing.T) {
	const nowhere = "0: /dev/null <nil>\n1: /dev/null <nil>\n"
	for _, kind := range []string{"pipes", "socket"} {
		t.Run(kind, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), stdioVar+"=1")
			cmd.Stderr = os.Stderr
			var in io.WriteCloser
			var out io.Reader
			if kind == "pipes" {
				in, _ = cmd.StdinPipe()
				out, _ = cmd.StdoutPipe()
			} else {
				a, b := guesttest.SocketPair(t)
				f, err := b.File()
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				_ = b.Close()
				cmd.Stdin, cmd.Stdout = f, f
				in, out = halfClose{a}, a
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if f, ok := cmd.Stdin.(*os.File); ok {
				_ = f.Close()
			}
			text := strings.Repeat("there and back ", 50_000)
			go func() {
				_, _ = io.WriteString(in, text)
				_ = in.Close()
			}()
			got, err := io.ReadAll(out)
			if err != nil || string(got) != nowhere+text {
				t.Errorf("%d bytes, %v: %.200q", len(got), err, got)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

type halfClose struct{ *net.UnixConn }

func (h halfClose) Close() error { return h.CloseWrite() }

// A connection of pipes has a read deadline where its pipe has one, and closes both.
func TestJoin(t *testing.T) {
	a, b := guesttest.Pipes(t)
	type deadliner interface{ SetReadDeadline(t time.Time) error }
	if err := a.(deadliner).SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	m, _ := guesttest.MemoryPair()
	if err := mux.Join(m, m).(deadliner).SetReadDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("deadline of a pipe without one: %v", err)
	}
	if err := errors.Join(a.Close(), a.Close()); err != nil {
		t.Error(err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read from a closed pipe: %v", err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a closed pipe: %v", err)
	}
}
