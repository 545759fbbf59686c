package owner

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

func TestRuntimeDirMustBePrivate(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if err := privateDir(own); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(own); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := privateDir(own); err != nil {
		t.Errorf("again: %v", err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o770); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(own, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{open, link, file, "relative"} {
		if err := privateDir(bad); !errors.Is(err, sandbox.ErrRefused) {
			t.Errorf("privateDir(%s) = %v, want a refusal", bad, err)
		}
	}
	if os.Getuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := os.Mkdir(theirs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(theirs, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if err := privateDir(theirs); !errors.Is(err, sandbox.ErrRefused) {
			t.Errorf("another user's directory: %v", err)
		}
	}
}

func TestSocketPathIsBounded(t *testing.T) {
	if _, err := socketPath("/run/berth", "bubblewrap-0123456789abcdef"); err != nil {
		t.Error(err)
	}
	if _, err := socketPath("/"+strings.Repeat("d", 100), "bubblewrap-0123456789abcdef"); !errors.Is(err, sandbox.ErrRefused) {
		t.Errorf("a path the kernel cannot hold: %v", err)
	}
}

func TestDefaultDirs(t *testing.T) {
	env := map[string]string{"HOME": "/h"}
	get := func(k string) string { return env[k] }
	if got := DefaultStateDir(get); got != "/h/.local/state/berth" {
		t.Error(got)
	}
	if got := DefaultRuntimeDir(get); !strings.HasPrefix(filepath.Base(got), "berth-") {
		t.Error(got)
	}
	env["XDG_STATE_HOME"], env["XDG_RUNTIME_DIR"] = "/s", "/r"
	if DefaultStateDir(get) != "/s/berth" || DefaultRuntimeDir(get) != "/r/berth" {
		t.Error(DefaultStateDir(get), DefaultRuntimeDir(get))
	}
	env["BERTH_STATE_DIR"], env["BERTH_RUNTIME_DIR"] = "/bs", "/br"
	if DefaultStateDir(get) != "/bs" || DefaultRuntimeDir(get) != "/br" {
		t.Error(DefaultStateDir(get), DefaultRuntimeDir(get))
	}
	if got := DefaultStateDir(func(string) string { return "" }); got != "" {
		t.Error(got)
	}
}

func TestStartLockExcludes(t *testing.T) {
	dir := t.TempDir()
	first, err := lockStart(t.Context(), dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := lockStart(ctx, dir, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second starter got in: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		l, err := lockStart(t.Context(), dir, "x")
		if err == nil {
			l.release()
		}
		got <- err
	}()
	first.release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestPeerOfOurUserIsAdmitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := checkPeer(s); err != nil {
		t.Error(err)
	}
}

func TestDialWithoutOwner(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	opts := Options{RuntimeDir: run}
	if _, err := Dial(t.Context(), "bubblewrap-0123456789abcdef", opts); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("no socket: %v", err)
	}
	// C185: a socket without a listener is as good as none.
	stale := filepath.Join(run, "bubblewrap-0123456789abcdef.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := Dial(t.Context(), "bubblewrap-0123456789abcdef", opts); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("stale socket: %v", err)
	}
}

// A starter whose owner dies, says nonsense or says nothing gets an error, and
// the owner does not go on.
func TestSpawnFailures(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if err := privateDir(run); err != nil {
		t.Fatal(err)
	}
	req := Request{Backend: "bubblewrap", ID: "bubblewrap-0123456789abcdef"}
	for _, c := range []struct {
		name, script string
		want         error
		text         string
	}{
		{"dies", "cat >/dev/null; exit 1", sandbox.ErrUnavailable, "ended before"},
		{"dies at once", "exit 1", sandbox.ErrUnavailable, "ended before"},
		{"nonsense", "cat >/dev/null; echo hello; exec sleep 100", nil, "no answer"},
		{"failure", `cat >/dev/null; echo '{"error":{"kind":"in-use","what":"it","remedy":"wait"}}'`, sandbox.ErrInUse, "it"},
		{"endless line", "cat >/dev/null; yes | tr -d '\\n'", sandbox.ErrUnavailable, "ended before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := spawn(t.Context(), req, Options{RuntimeDir: run, Executable: "/bin/sh", Args: []string{"-c", c.script}, Env: os.Environ()})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := spawn(ctx, req, Options{RuntimeDir: run, Executable: "/bin/sh", Args: []string{"-c", "exec sleep 100"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a starter that hangs: %v", err)
	}
	if err := spawn(t.Context(), req, Options{RuntimeDir: run, Executable: "/nonexistent"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no executable: %v", err)
	}
}

func TestFailuresKeepTheirMeaning(t *testing.T) {
	for _, want := range []error{
		sandbox.ErrRefused, sandbox.ErrUnavailable, sandbox.ErrRevoked, sandbox.ErrGone, sandbox.ErrInUse,
		sandbox.ErrNotFound, sandbox.ErrUnknownBackend, context.DeadlineExceeded,
	} {
		in := &sandbox.Problem{What: "w", Rule: "r", Remedy: "m", Field: "f", Err: want}
		data, err := json.Marshal(answer{Error: newFailure(in)})
		if err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatal(err)
		}
		out := a.Error.err()
		var p *sandbox.Problem
		if !errors.Is(out, want) || !errors.As(out, &p) || p.What != "w" || p.Rule != "r" || p.Remedy != "m" || p.Field != "f" {
			t.Errorf("%v came back as %#v", want, out)
		}
	}
	out := newFailure(&proc.StartError{Reason: proc.NoCommand, What: "x", Err: syscall.ENOENT}).err()
	var s *proc.StartError
	if !errors.As(out, &s) || s.Reason != proc.NoCommand || s.What != "x" {
		t.Errorf("start error came back as %v", out)
	}
	if !errors.Is(newFailure(errors.New("boom")).err(), sandbox.ErrUnavailable) {
		t.Error("an error of no kind counts as unavailable")
	}
}

func TestOwnerGetsNoSecrets(t *testing.T) {
	got := ownerEnv([]string{"PATH=/bin", "AWS_SECRET=x", "HOME=/h", "BERTH_GUEST=/g", "XDG_RUNTIME_DIR=/r", "LC_ALL=C", "TOKEN=y"})
	want := "PATH=/bin HOME=/h BERTH_GUEST=/g XDG_RUNTIME_DIR=/r LC_ALL=C"
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestIdleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 1)
		begin := time.Now()
		a := newActivity(time.Minute, func() { fired <- time.Now() })
		time.Sleep(50 * time.Second) //sleep: the bubble's clock
		first, second := a.begin(), a.begin()
		time.Sleep(time.Hour) //sleep: the bubble's clock
		first()
		first()               // ending twice counts once
		time.Sleep(time.Hour) //sleep: the bubble's clock
		second()
		at := <-fired
		if d := at.Sub(begin); d != 50*time.Second+2*time.Hour+time.Minute {
			t.Errorf("fired after %v", d)
		}
		a.stop()
	})
}

func TestEnvMap(t *testing.T) {
	env, err := envMap([]string{"A=1", "A=2", "B=", "C=x=y"})
	if err != nil || env["A"] != "2" || env["B"] != "" || env["C"] != "x=y" || len(env) != 3 {
		t.Errorf("%v %v", env, err)
	}
	if _, err := envMap([]string{"nothing"}); err == nil {
		t.Error("an entry without = was accepted")
	}
}
