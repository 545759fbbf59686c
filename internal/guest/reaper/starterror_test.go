//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/proc"
)

func writeFile(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// Every way a command can fail to start is its own error, and nothing runs. C081
func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, in("plain"), "text", 0o644)
	writeFile(t, in("no-shebang"), "echo hi\n", 0o755)
	writeFile(t, in("lost-interpreter"), "#!/no/such/interpreter -x\n", 0o755)
	writeFile(t, in("garbage"), "\x7fELF\x01\x01", 0o755)
	if err := os.Mkdir(in("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("fifo"), 0o777); err != nil {
		t.Fatal(err)
	}
	path := []string{"PATH=" + in("nowhere") + ":" + dir}
	big := strings.Repeat("x", 100<<10)
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf("V%d=%s", i, big))
	}

	resolve := func(ctx context.Context, dir string) (*os.File, error) {
		if strings.HasPrefix(dir, "/etc") {
			return nil, &fsbridge.PathError{Op: "open", Path: dir, Err: fsbridge.ErrOutsideRoot}
		}
		return plainDir(ctx, dir)
	}
	r := newRunner(t, func(o *Options) { o.ResolveDir = resolve })
	for _, tc := range []struct {
		name   string
		spec   proc.Spec
		reason proc.StartReason
		errno  error
		says   string
	}{
		{"no such command", proc.Spec{Argv: []string{"no-such-command"}, Env: path}, proc.NoCommand, syscall.ENOENT, "not found on PATH"},
		{"no such command, default path", proc.Spec{Argv: []string{"no-such-command"}}, proc.NoCommand, syscall.ENOENT, "/usr/bin"},
		{"no such file", proc.Spec{Argv: []string{"/no/such/file"}}, proc.NoCommand, syscall.ENOENT, ""},
		{"below a file", proc.Spec{Argv: []string{in("plain/x")}}, proc.NoCommand, syscall.ENOTDIR, ""},
		{"not executable", proc.Spec{Argv: []string{in("plain")}}, proc.NotExecutable, syscall.EACCES, "permission denied"},
		{"not executable on the path", proc.Spec{Argv: []string{"plain"}, Env: path}, proc.NotExecutable, syscall.EACCES, "permission denied"},
		{"a directory", proc.Spec{Argv: []string{in("sub")}}, proc.NotExecutable, syscall.EISDIR, "directory"},
		{"a pipe", proc.Spec{Argv: []string{in("fifo")}}, proc.NotExecutable, nil, "not a regular file"},
		{"a script without shebang", proc.Spec{Argv: []string{in("no-shebang")}}, proc.NotExecutable, syscall.ENOEXEC, "#!/bin/sh"},
		{"a script with a lost interpreter", proc.Spec{Argv: []string{in("lost-interpreter")}}, proc.NotExecutable, syscall.ENOENT, `"/no/such/interpreter" is missing`},
		{"a cut program", proc.Spec{Argv: []string{in("garbage")}}, proc.NotExecutable, nil, ""},
		{"missing directory", proc.Spec{Argv: []string{"true"}, Dir: in("missing")}, proc.NoDirectory, fs.ErrNotExist, ""},
		{"tilde is a name", proc.Spec{Argv: []string{"true"}, Dir: "~/proj"}, proc.NoDirectory, fs.ErrNotExist, ""},
		{"file as directory", proc.Spec{Argv: []string{"true"}, Dir: in("plain")}, proc.NotDirectory, syscall.ENOTDIR, ""},
		{"outside directory", proc.Spec{Argv: []string{"true"}, Dir: "/etc/ssl"}, proc.OutsideDir, fsbridge.ErrOutsideRoot, ""},
		{"no argv", proc.Spec{}, proc.BadSpec, nil, "no command"},
		{"empty command", proc.Spec{Argv: []string{""}}, proc.BadSpec, nil, "no command"},
		{"NUL in argument", proc.Spec{Argv: []string{"echo", "a\x00b"}}, proc.BadSpec, nil, "argument 1"},
		{"NUL in environment", proc.Spec{Argv: []string{"true"}, Env: []string{"K=a\x00b"}}, proc.BadSpec, nil, `"K"`},
		{"NUL in directory", proc.Spec{Argv: []string{"true"}, Dir: "/\x00"}, proc.BadSpec, nil, "directory"},
		{"no equals sign", proc.Spec{Argv: []string{"true"}, Env: []string{"KEY"}}, proc.BadSpec, nil, "KEY=VALUE"},
		{"no key", proc.Spec{Argv: []string{"true"}, Env: []string{"=v"}}, proc.BadSpec, nil, "KEY=VALUE"},
		{"bad marker", proc.Spec{Argv: []string{"true"}, Marker: "../../x"}, proc.BadSpec, nil, "marker"},
		{"too large for the system", proc.Spec{Argv: []string{"true"}, Env: many}, proc.BadSpec, syscall.E2BIG, "larger than the system allows"},
		{"too large for us", proc.Spec{Argv: []string{"true", strings.Repeat("x", 2<<20)}}, proc.BadSpec, nil, "at most"},
		{"too many", proc.Spec{Argv: make([]string, 70<<10)}, proc.BadSpec, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, limits := range []proc.Limits{{}, {CPUSeconds: 1000}} {
				tc.spec.Limits = limits
				p, err := r.Start(testContext(t), tc.spec, proc.IO{})
				if p != nil || err == nil {
					t.Fatalf("Start = %v, %v; want no process and an error", p, err)
				}
				e := startErrorOf(t, err)
				if e.Reason != tc.reason {
					t.Errorf("reason %q, want %q (%v)", e.Reason, tc.reason, err)
				}
				if tc.errno != nil && !errors.Is(err, tc.errno) {
					t.Errorf("%v does not match %v", err, tc.errno)
				}
				if !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %q does not say %q", err, tc.says)
				}
			}
		})
	}
}

// A command is found as execvp finds it.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a", "b", "work"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := func(path, says string, mode os.FileMode) {
		writeFile(t, filepath.Join(dir, path), "#!/bin/sh\necho "+says+" \"$0\"\n", mode)
	}
	script("a/tool", "a", 0o644) // not executable: passed over
	script("b/tool", "b", 0o755)
	script("work/tool", "work", 0o755)
	script("work/here", "here", 0o755)
	r := newRunner(t)
	for _, tc := range []struct {
		name string
		argv string
		env  []string
		want string
	}{
		{"passes over what is not executable", "tool", []string{"PATH=" + dir + "/a:" + dir + "/b"}, "b " + dir + "/b/tool"},
		{"the last PATH counts", "tool", []string{"PATH=/nowhere", "PATH=" + dir + "/b/"}, "b " + dir + "/b/tool"},
		{"an empty element is the working directory", "tool", []string{"PATH=/nowhere::" + dir + "/b"}, "work ./tool"},
		{"a relative element", "tool", []string{"PATH=../b"}, "b ../b/tool"},
		{"a slash means a path", "./here", []string{"PATH=" + dir + "/b"}, "here ./here"},
		{"a path up", "../b/tool", nil, "b ../b/tool"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, r, proc.Spec{Argv: []string{tc.argv}, Env: tc.env, Dir: filepath.Join(dir, "work")}, nil)
			if got.stdout != tc.want+"\n" {
				t.Errorf("ran %q (%+v), want %q", got.stdout, got.status, tc.want)
			}
		})
	}
	t.Run("no PATH at all", func(t *testing.T) {
		if got := run(t, r, proc.Spec{Argv: []string{"echo", "found"}}, nil); got.stdout != "found\n" {
			t.Errorf("got %+v", got)
		}
	})
}

// The working directory is the directory that was resolved, whatever its name has
// come to mean since. C081
func TestDirIsPinned(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"real", "other"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	real := filepath.Join(dir, "real")
	r := newRunner(t, func(o *Options) {
		o.ResolveDir = func(ctx context.Context, _ string) (*os.File, error) {
			f, err := plainDir(ctx, real)
			if err != nil {
				return nil, err
			}
			return f, errors.Join(os.Rename(real, real+".moved"), os.Rename(filepath.Join(dir, "other"), real))
		}
	})
	got := run(t, r, proc.Spec{Argv: []string{"touch", "ran.here"}, Dir: "anything"}, nil)
	if got.status.Code != 0 {
		t.Fatalf("got %+v", got)
	}
	if _, err := os.Stat(real + ".moved/ran.here"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(real + "/ran.here"); err == nil {
		t.Error("the command ran in a directory that was put in its place")
	}
}

// A failed start leaves neither processes nor descriptors, and the next one works.
func TestStartErrorLeavesNothing(t *testing.T) {
	r := newRunner(t)
	count := func() int {
		fds, err := numericNames("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	run(t, r, script("exit 0"), nil)
	eventually(t, "an idle reaper", func() bool { return r.stock.ready() > 0 })
	before := count()
	for range 20 {
		for _, tty := range []*proc.Size{nil, {Rows: 1, Cols: 1}} {
			spec := proc.Spec{Argv: []string{"/no/such/file"}, TTY: tty, Stdin: true}
			if _, err := r.Start(testContext(t), spec, proc.IO{}); err == nil {
				t.Fatal("started")
			}
		}
	}
	eventually(t, "all descriptors closed", func() bool {
		return r.stock.ready() > 0 && count() <= before+maxIdle // one connection each
	})
	if got := run(t, r, script("echo ok"), nil); got.stdout != "ok\n" {
		t.Errorf("got %+v", got)
	}
}

// A start whose context ends leaves nothing behind.
func TestStartCancelled(t *testing.T) {
	r := newRunner(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Start(ctx, script("exit 0"), proc.IO{})
	if e := startErrorOf(t, err); !errors.Is(err, context.Canceled) || e.Reason != proc.Internal {
		t.Errorf("error %v, want one that matches context.Canceled", err)
	}

	id := newTracer(t)
	for range 20 { // whatever the moment of the cancellation
		ctx, cancel := context.WithCancel(context.Background())
		r := newRunner(t, func(o *Options) {
			o.ResolveDir = func(ctx context.Context, dir string) (*os.File, error) {
				go cancel()
				return plainDir(ctx, dir)
			}
		})
		p, err := r.Start(ctx, proc.Spec{Argv: []string{"sleep", string(id)}}, proc.IO{})
		if err == nil {
			terminate(t, p, -1)
		}
		id.mustBeGone(t)
		cancel()
	}
}

// A closed Runner starts nothing.
func TestStartAfterClose(t *testing.T) {
	r := newRunner(t)
	if err := r.Close(testContext(t)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Start(testContext(t), script("exit 0"), proc.IO{})
	if !errors.Is(err, errClosed) {
		t.Errorf("error %v, want %v", err, errClosed)
	}
}
