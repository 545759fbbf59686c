//go:build linux

package reaper

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// deadline is far more than anything takes here; it only ends hangs.
const deadline = 60 * time.Second

// testEnv is an environment in which the tools the tests use are found.
func testEnv() []string { return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"} }

// newRunner returns a Runner that has left nothing behind when the test ends.
func newRunner(t testing.TB, change ...func(*Options)) *Runner {
	t.Helper()
	before := goleak.IgnoreCurrent()
	o := Options{Orphans: testOrphans, Stderr: os.Stderr}
	for _, c := range change {
		c(&o)
	}
	r := New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("github.com/workberth/workberth/internal/guest/reaper.(*Orphans).fork"))
	})
	return r
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func newMarker(t testing.TB) string {
	t.Helper()
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b[:])
}

func script(text string) proc.Spec {
	return proc.Spec{Argv: []string{"sh", "-c", text}, Env: testEnv()}
}

// result is what came of a command.
type result struct {
	status         proc.Status
	stdout, stderr string
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// grown gets a value after a write, if it has room.
	grown chan struct{}
}

func newBuffer() *buffer { return &buffer{grown: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.b.Write(p)
	select {
	case b.grown <- struct{}{}:
	default:
	}
	return n, err
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// awaitText waits until the buffer contains text.
func (b *buffer) awaitText(t testing.TB, text string) string {
	t.Helper()
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	for {
		if s := b.String(); strings.Contains(s, text) {
			return s
		}
		select {
		case <-b.grown:
		case <-timer.C:
			t.Fatalf("%q never came; there is %q", text, b.String())
		}
	}
}

// start starts a command and collects its output.
func begin(t testing.TB, r *Runner, spec proc.Spec, stdin io.Reader) (proc.Process, *buffer, *buffer) {
	t.Helper()
	stdout, stderr := newBuffer(), newBuffer()
	p, err := r.Start(testContext(t), spec, proc.IO{Stdin: stdin, Stdout: stdout, Stderr: stderr})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return p, stdout, stderr
}

// run runs a command to its end.
func run(t testing.TB, r *Runner, spec proc.Spec, stdin io.Reader) result {
	t.Helper()
	p, stdout, stderr := begin(t, r, spec, stdin)
	status, err := p.Wait(testContext(t))
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return result{status, stdout.String(), stderr.String()}
}

// eventually polls for a fact the system gives no event for.
func eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !fact(); {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(2 * time.Millisecond) //sleep: the process table gives no events
	}
}

func startErrorOf(t testing.TB, err error) *proc.StartError {
	t.Helper()
	var e *proc.StartError
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T), want a StartError", err, err)
	}
	return e
}

// tracer is a word that appears in the arguments of a test's processes and of no
// others: an argument for sleep, so that a process needs no other disguise.
type tracer string

func newTracer(t testing.TB) tracer {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000_000_000))
	if err != nil {
		t.Fatal(err)
	}
	id := tracer(fmt.Sprintf("3600.%012d", n))
	t.Cleanup(func() {
		// What the test killed itself may take a moment to be gone.
		for end := time.Now().Add(5 * time.Second); len(id.alive()) > 0 && time.Now().Before(end); {
			time.Sleep(2 * time.Millisecond) //sleep: the process table gives no events
		}
		for _, pid := range id.alive() {
			t.Errorf("process %d is left", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return id
}

// alive lists the processes that carry the tracer and are not dead, but not hosts,
// whose orders contain it, and their forks that have not become reapers yet.
func (id tracer) alive() (list []int) {
	all, err := pids()
	if err != nil {
		panic(err)
	}
	for _, pid := range all {
		b, err := readAll("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && bytes.Contains(b, []byte(id)) && !bytes.Contains(b, []byte("\x00"+roleHost+"\x00")) && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// mustBeGone fails if a process is alive that carries the tracer.
func (id tracer) mustBeGone(t testing.TB) {
	t.Helper()
	if left := id.alive(); len(left) > 0 {
		t.Fatalf("%d processes are alive that were reported gone: %v", len(left), left)
	}
}

// awaitCount waits until so many processes carry the tracer. One that is just
// becoming another program has no arguments for a moment.
func (id tracer) awaitCount(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d processes", n), func() bool { return len(id.alive()) == n })
}

// terminate ends a process and demands that it be gone.
func terminate(t testing.TB, p proc.Process, grace time.Duration) proc.TerminateResult {
	t.Helper()
	result, err := p.Terminate(testContext(t), grace)
	if err != nil || result.Outcome != proc.Gone {
		t.Fatalf("Terminate: %+v, %v; want gone", result, err)
	}
	return result
}
