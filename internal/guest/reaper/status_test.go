//go:build linux

package reaper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/internal/guest/proc"
)

// C073: exit codes are kept as given, signals are told as signals.
func TestStatus(t *testing.T) {
	r := newRunner(t)
	for _, tc := range []struct {
		script string
		want   proc.Status
	}{
		{"exit 0", proc.Status{}},
		{"exit 1", proc.Status{Code: 1}},
		{"exit 255", proc.Status{Code: 255}},
		{"exit 137", proc.Status{Code: 137}},
		{"exit 300", proc.Status{Code: 44}},
		{"kill -9 $$", proc.Status{Code: 137, Signal: 9}},
		{"kill -TERM $$", proc.Status{Code: 143, Signal: 15}},
		{"kill -ABRT $$", proc.Status{Code: 134, Signal: 6}},
		{"{ kill -STOP $$; kill -CONT $$; } & wait; exit 7", proc.Status{Code: 7}},
		{"sh -c 'kill -9 $$'", proc.Status{Code: 137}}, // the shell's own code for its child
	} {
		t.Run(tc.script, func(t *testing.T) {
			spec := script(tc.script)
			if strings.HasPrefix(tc.script, "sh -c") {
				spec = script(tc.script + "; exit $?")
			}
			got := run(t, r, spec, nil)
			got.status.Leftover = 0
			if got.status != tc.want {
				t.Errorf("status %+v, want %+v", got.status, tc.want)
			}
		})
	}
}

// C071: the environment arrives byte for byte, the last of equal names wins, and
// nothing else is in it.
func TestEnvironment(t *testing.T) {
	r := newRunner(t)
	env := []string{
		"Z=first", "K=-----A\nB\nC-----\n", "E=", `Q=a"b'c$HOME` + "`id`", "U=\xc3\xa9\xff", "S=  x  ", "P=a=b=c", "Z=second", "M=\x01\x7f",
	}
	want := slices.Clone(env)
	want[0] = "Z=second"
	want = slices.Delete(want, 7, 8)
	for name, limits := range map[string]proc.Limits{"direct": {}, "with limits": {OpenFiles: 64}, "by way of the shim": {CPUSeconds: 1000}} {
		t.Run(name, func(t *testing.T) {
			marker := newMarker(t)
			got := run(t, r, proc.Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}, Env: env, Marker: marker, Limits: limits}, nil)
			all := append(slices.Clone(want), proc.MarkerVar+"="+marker)
			if got.stdout != strings.Join(all, "\x00")+"\x00" {
				t.Errorf("environment %q, want %q", got.stdout, all)
			}
		})
	}
	t.Run("empty", func(t *testing.T) {
		if got := run(t, r, proc.Spec{Argv: []string{"/bin/cat", "/proc/self/environ"}}, nil); got.stdout != "" {
			t.Errorf("environment %q, want none", got.stdout)
		}
	})
}

// Arguments arrive byte for byte, the name included.
func TestArguments(t *testing.T) {
	r := newRunner(t)
	argv := []string{"cat", "/proc/self/cmdline", "", "a b", "-", "--", "\xff\n'\"$x", "*"}
	got := run(t, r, proc.Spec{Argv: argv, Env: testEnv()}, nil)
	if want := strings.Join(argv, "\x00") + "\x00"; !strings.HasPrefix(got.stdout, want) {
		t.Errorf("arguments %q, want %q", got.stdout, want)
	}
}

// A command gets standard streams and nothing else, a session and process group of
// its own, default signals, no core files.
func TestHygiene(t *testing.T) {
	r := newRunner(t)
	for name, limits := range map[string]proc.Limits{"direct": {}, "with limits": {FileSize: 1 << 30}, "by way of the shim": {CPUSeconds: 1000}} {
		t.Run(name, func(t *testing.T) {
			spec := script(`for n in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$n ] && echo "fd $n"; done
grep -E '^Sig(Blk|Ign):' /proc/self/status # its own: a shell blocks signals while it forks
ulimit -c
read -r pid comm state ppid pgrp session rest < /proc/$$/stat
echo "own group $((pgrp == $$)) own session $((session == $$))"`)
			spec.Limits = limits
			got := run(t, r, spec, nil)
			for _, want := range []string{
				"fd 0\nfd 1\nfd 2\nSig", "SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "\n0\n", "own group 1 own session 1",
			} {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("%q is missing in %q %q", want, got.stdout, got.stderr)
				}
			}
		})
	}
}

// The soft limit on open files is the one this process was started with, not the
// one the Go runtime raised for itself.
func TestOpenFilesLimitIsInherited(t *testing.T) {
	// A host started with a lower soft limit passes it on.
	for name, limits := range map[string]proc.Limits{"direct": {}, "with limits": {FileSize: 1 << 30}, "by way of the shim": {CPUSeconds: 1000}} {
		t.Run(name, func(t *testing.T) {
			spec := script("ulimit -Sn; ulimit -Hn")
			spec.Limits = limits
			h := startHost(t, hostOrder{Spec: spec}, "sh", "-c", `ulimit -Sn 1234; ulimit -Hn 4321; exec "$@"`, "sh")
			if got := h.awaitText("4321\n"); got != "1234\n4321\n" {
				t.Errorf("limits %q, want 1234 and 4321", got)
			}
		})
	}
}

// Signals ignored or blocked where the helper was started are neither in a command.
func TestSignalsAreDefault(t *testing.T) {
	spec := script(`grep -E '^Sig(Blk|Ign):' /proc/self/status; echo done`)
	h := startHost(t, hostOrder{Spec: spec}, "sh", "-c", `trap '' HUP INT QUIT TERM PIPE USR1 CHLD; exec "$@"`, "sh")
	got := h.awaitText("done")
	if !strings.Contains(got, "SigIgn:\t0000000000000000") || !strings.Contains(got, "SigBlk:\t0000000000000000") {
		t.Errorf("signals in the command: %q", got)
	}
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("no perl to block signals with")
	}
	h = startHost(t, hostOrder{Spec: spec}, "perl", "-e",
		`use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGTERM, SIGINT, SIGUSR2)); exec @ARGV`, "--")
	if got := h.awaitText("done"); !strings.Contains(got, "SigBlk:\t0000000000000000") {
		t.Errorf("signals blocked in the command: %q", got)
	}
}

// A command of the same user can neither debug its reaper nor read from it; the
// specification is in no argument and no environment but the command's own.
func TestReaperIsClosed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root some of this cannot be refused; see TestAsAnotherUser")
	}
	r := newRunner(t, func(o *Options) { o.Tag = "a-tag" })
	const secret = "SECRET=c2VjcmV0"
	spec := script(`tr '\0' '\n' < /proc/$PPID/cmdline; echo --; tr '\0' '\n' < /proc/$PPID/environ; echo --; cat /proc/$PPID/comm`)
	spec.Env = append(spec.Env, secret)
	for _, marker := range []string{newMarker(t), "", newMarker(t)} {
		spec.Marker = marker
		got := run(t, r, spec, nil)
		if marker == "" {
			marker = blankMarker
		}
		if strings.Contains(got.stdout, "c2VjcmV0") {
			t.Errorf("the reaper shows the command's environment: %q", got.stdout)
		}
		if !strings.HasPrefix(got.stdout, "berth-guest\nreap\n"+marker+"\na-tag\n--\n") || !strings.HasSuffix(got.stdout, "berth-reap\n") {
			t.Errorf("the reaper is not recognisable: %q", got.stdout)
		}
	}
}

// Signal reaches the direct child's process group; afterwards it is an error.
func TestSignal(t *testing.T) {
	r := newRunner(t)
	p, stdout, _ := begin(t, r, script(`trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.01; done`), nil)
	stdout.awaitText(t, "ready")
	for _, bad := range []int{0, -1, 65, 1000} {
		if err := p.Signal(t.Context(), bad); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("Signal(%d) = %v, want EINVAL", bad, err)
		}
	}
	if err := p.Signal(t.Context(), int(syscall.SIGUSR1)); err != nil {
		t.Fatal(err)
	}
	s, err := p.Wait(testContext(t))
	if err != nil || s.Code != 5 {
		t.Fatalf("status %+v, %v; want 5", s, err)
	}
	if err := p.Signal(t.Context(), int(syscall.SIGUSR1)); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("Signal after the end = %v, want ESRCH", err)
	}
	if stdout.String() != "ready\nusr1\n" {
		t.Errorf("output %q", stdout.String())
	}
}

// A program that was written a moment ago runs, even while other processes are
// being forked.
func TestJustWrittenProgram(t *testing.T) {
	r := newRunner(t)
	dir := t.TempDir()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				run(t, r, script("exit 0"), nil)
			}
		}
	}()
	var text bytes.Buffer
	text.WriteString("#!/bin/sh\necho ok\n")
	for i := range 50 {
		name := fmt.Sprintf("%s/p%d", dir, i)
		writeFile(t, name, text.String(), 0o755)
		if got := run(t, r, proc.Spec{Argv: []string{name}, Env: testEnv()}, nil); got.stdout != "ok\n" {
			t.Fatalf("got %+v", got)
		}
	}
	close(stop)
	<-stopped
}
