//go:build linux

package reaper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// roleHost is the role of a process that has a Runner as the helper has one, for
// tests that kill it, or that need a process namespace or a user of its own.
const roleHost = "host"

// hostOrder is what a host is to run, as its second argument.
type hostOrder struct {
	Spec proc.Spec
	Tag  string
	// Fill starts the command again and again until that is refused, closes what was
	// started, and goes on.
	Fill bool
	// Search, when set, is a marker that the host terminates first.
	Search string
	// Name is what the host calls itself in a process list.
	Name string
}

// hostEvent is a line a host prints.
type hostEvent struct {
	Event  string // started, output, ended, terminated, closed, failed
	Pid    int    `json:",omitempty"`
	Text   string `json:",omitempty"`
	Status *proc.Status
	Result *proc.TerminateResult
	// Took is how long a termination took.
	Took time.Duration `json:",omitempty"`
}

type hostPrinter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func (p *hostPrinter) print(e hostEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.enc.Encode(e) // a test that is gone reads nothing
}

// Write prints a command's output.
func (p *hostPrinter) Write(b []byte) (int, error) {
	p.print(hostEvent{Event: "output", Text: string(b)})
	return len(b), nil
}

// hostMain runs one command. A line on its input terminates it, with the grace the
// line says; the end of its input closes the Runner.
func hostMain() int {
	var order hostOrder
	if err := json.Unmarshal([]byte(os.Args[2]), &order); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := Harden(order.Name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	Warm(8)
	orphans := NewOrphans()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		hostRun(New(Options{Orphans: orphans, Tag: order.Tag, Stderr: os.Stderr}), order)
	}()
	if err := orphans.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func hostRun(r *Runner, order hostOrder) {
	out := &hostPrinter{enc: json.NewEncoder(os.Stdout)}
	ctx := context.Background()
	if order.Search != "" {
		result, err := r.Terminate(ctx, order.Search, -1)
		if err != nil {
			out.print(hostEvent{Event: "failed", Text: err.Error()})
			return
		}
		out.print(hostEvent{Event: "searched", Result: &result})
	}
	if order.Fill {
		hostFill(ctx, r, order.Spec, out)
	}
	p, err := r.Start(ctx, order.Spec, proc.IO{Stdout: out, Stderr: out})
	if err != nil {
		out.print(hostEvent{Event: "failed", Text: err.Error()})
		return
	}
	out.print(hostEvent{Event: "started", Pid: p.Pid()})
	go func() {
		if s, err := p.Wait(ctx); err == nil {
			out.print(hostEvent{Event: "ended", Status: &s})
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		grace, err := time.ParseDuration(lines.Text())
		if err != nil {
			out.print(hostEvent{Event: "failed", Text: err.Error()})
			return
		}
		begin := time.Now()
		result, err := p.Terminate(ctx, grace)
		if err != nil {
			out.print(hostEvent{Event: "failed", Text: err.Error()})
			return
		}
		out.print(hostEvent{Event: "terminated", Result: &result, Took: time.Since(begin)})
	}
	if err := r.Close(ctx); err != nil {
		out.print(hostEvent{Event: "failed", Text: err.Error()})
		return
	}
	out.print(hostEvent{Event: "closed"})
}

// hostFill starts commands until there is no room for more.
func hostFill(ctx context.Context, r *Runner, spec proc.Spec, out *hostPrinter) {
	var started []proc.Process
	for {
		p, err := r.Start(ctx, spec, proc.IO{})
		if err == nil {
			started = append(started, p)
			continue
		}
		reason := "no StartError: " + err.Error()
		var e *proc.StartError
		if errors.As(err, &e) {
			reason = string(e.Reason)
		}
		out.print(hostEvent{Event: "refused", Text: reason, Pid: len(started)})
		break
	}
	for _, p := range started {
		result, err := p.Terminate(ctx, -1)
		if err != nil || result.Outcome != proc.Gone {
			out.print(hostEvent{Event: "failed", Text: fmt.Sprint(result, err)})
		}
	}
}

// host is a process in the role of a host.
type host struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	events chan hostEvent
	passed []hostEvent // that nobody has waited for yet
}

// startHost starts a host, by way of the words in prefix if there are any.
func startHost(t testing.TB, order hostOrder, prefix ...string) *host {
	t.Helper()
	if order.Name == "" {
		order.Name = HelperName
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	argv := append(prefix, exe, roleHost, string(text))
	h := &host{t: t, cmd: exec.Command(argv[0], argv[1:]...), events: make(chan hostEvent, 64)} //nolint:noctx // ended below
	h.cmd.Stderr = os.Stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.events)
		for dec := json.NewDecoder(out); ; {
			var e hostEvent
			if dec.Decode(&e) != nil {
				return
			}
			h.events <- e
		}
	}()
	t.Cleanup(h.kill)
	return h
}

// await returns the next event of that kind.
func (h *host) await(kind string) hostEvent {
	h.t.Helper()
	for i, e := range h.passed {
		if e.Event == kind {
			h.passed = slices.Delete(h.passed, i, i+1)
			return e
		}
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	for {
		select {
		case e, ok := <-h.events:
			switch {
			case !ok:
				h.t.Fatalf("the host ended before %q", kind)
			case e.Event == "failed":
				h.t.Fatalf("the host failed: %s", e.Text)
			case e.Event == kind:
				return e
			default:
				h.passed = append(h.passed, e)
			}
		case <-timer.C:
			h.t.Fatalf("no %q from the host", kind)
		}
	}
}

// awaitText collects output until it contains text.
func (h *host) awaitText(text string) string {
	h.t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), text) {
		all.WriteString(h.await("output").Text)
	}
	return all.String()
}

// terminate asks the host to terminate its command.
func (h *host) terminate(grace time.Duration) hostEvent {
	h.t.Helper()
	if _, err := fmt.Fprintln(h.in, grace); err != nil {
		h.t.Fatal(err)
	}
	return h.await("terminated")
}

// kill kills the host with SIGKILL.
func (h *host) kill() {
	_ = unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL) // its group: prefix words may have forked
	_ = h.in.Close()
	_ = h.cmd.Wait()
	for range h.events {
	}
}
