package probe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/probe"
)

// tools makes a directory with a program, a file that is none and a folder.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"our-tool": 0o755, "no-tool": 0o644, "test": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func ask() skills.Request {
	return skills.Request{Binaries: []string{"folder", "missing", "no-tool", "our-tool", "test"}, Env: []string{"EMPTY", "SET", "UNSET"}}
}

const want = "map[folder:false missing:false no-tool:false our-tool:true test:true] map[EMPTY:false SET:true UNSET:false]"

func check(t *testing.T, f skills.Facts, err error, platform, want string) {
	t.Helper()
	if got := fmt.Sprint(f.Binaries, " ", f.Env); err != nil || got != want || f.Platform != platform {
		t.Errorf("%s %s, %v\nwant %s %s", f.Platform, got, err, platform, want)
	}
}

// shells are the shells that a machine may have as sh.
func shells(t *testing.T) [][]string {
	t.Helper()
	var out [][]string
	for _, s := range [][]string{{"sh"}, {"bash"}, {"dash"}, {"busybox", "sh"}, {"zsh", "--emulate", "sh"}} {
		if p, err := exec.LookPath(s[0]); err == nil {
			out = append(out, append([]string{p}, s[1:]...))
		}
	}
	return out
}

// SKL-04: one command, whatever is asked for, in every kind of POSIX shell.
func TestShell(t *testing.T) {
	dir := tools(t)
	for _, shell := range shells(t) {
		runs := 0
		run := func(ctx context.Context, argv []string) ([]byte, error) {
			runs++
			cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], argv[1:]...)...)
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "SET=1", "EMPTY="}
			return cmd.Output()
		}
		f, err := probe.Shell{Run: run}.Probe(t.Context(), ask())
		check(t, f, err, runtime.GOOS, want)
		if runs != 1 {
			t.Errorf("%v: %d commands", shell, runs)
		}
		// The script's own variables are no answer.
		mine := skills.Request{Env: []string{"_berth_d", "_berth_n", "_berth_v", "_berth_x", "_n", "_x"}}
		if f, err := (probe.Shell{Run: run}).Probe(t.Context(), mine); err != nil || fmt.Sprint(f.Env) != "map[_berth_d:false _berth_n:false _berth_v:false _berth_x:false _n:false _x:false]" {
			t.Errorf("%v: %v, %v", shell, f.Env, err)
		}
	}
}

// More names than a command may have are asked for by several.
func TestManyNames(t *testing.T) {
	many := ask()
	for i := range 20_000 {
		many.Binaries = append(many.Binaries, fmt.Sprintf("tool-with-a-long-name-%05d", i))
	}
	var runs atomic.Int64
	run := func(ctx context.Context, argv []string) ([]byte, error) {
		runs.Add(1)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = []string{"PATH=" + "/usr/bin", "SET=1"}
		return cmd.Output()
	}
	f, err := probe.Shell{Run: run}.Probe(t.Context(), many)
	if err != nil || runs.Load() != 6 || len(f.Binaries) != 20_005 || !f.Env["SET"] || !f.Binaries["test"] || f.Binaries["missing"] {
		t.Errorf("%d commands, %d answers, %v", runs.Load(), len(f.Binaries), err)
	}
}

func TestShellAnswers(t *testing.T) {
	answer := func(s string, err error) probe.Shell {
		return probe.Shell{Platform: "plan9", Run: func(context.Context, []string) ([]byte, error) { return []byte(s), err }}
	}
	f, err := answer("system \nbin other\nbin our-tool\nnoise\nend\n", nil).Probe(t.Context(), ask())
	check(t, f, err, "plan9", "map[folder:false missing:false no-tool:false our-tool:true test:false] map[EMPTY:false SET:false UNSET:false]")
	if f, err := answer("system MINGW64_NT\r\nend\r\n", nil).Probe(t.Context(), skills.Request{}); err != nil || f.Platform != "windows" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := answer("system Linux\nbin our-tool\n", nil).Probe(t.Context(), ask()); err == nil {
		t.Error("half an answer is taken")
	}
	broken := errors.New("broken")
	if _, err := answer("", broken).Probe(t.Context(), ask()); !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, bad := range []skills.Request{{Binaries: []string{"a b"}}, {Binaries: []string{"-v"}}, {Binaries: []string{"$(x)"}}, {Env: []string{"A-B"}}, {Env: []string{"1A"}}, {Env: []string{"x}$(id)"}}, {Binaries: []string{""}}} {
		if _, err := answer("end\n", nil).Probe(t.Context(), bad); !errors.Is(err, fsbridge.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Without a shell the files on PATH are looked at.
func TestPath(t *testing.T) {
	dir := tools(t)
	b, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountSystem, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	e := probe.Either{
		Shell: probe.Shell{Run: func(context.Context, []string) ([]byte, error) { return nil, probe.ErrNoShell }},
		Path:  probe.Path{Bridge: b, Dirs: []string{"/nowhere", dir, filepath.Join(dir, "no-tool")}, Platform: "linux", Env: map[string]string{"SET": "1", "EMPTY": ""}},
	}
	f, err := e.Probe(t.Context(), ask())
	check(t, f, err, "linux", want)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Path.Probe(ctx, ask()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e.Shell.Run = func(context.Context, []string) ([]byte, error) { return nil, probe.ErrNoCommands }
	f, err = e.Probe(t.Context(), ask())
	check(t, f, err, "", "map[folder:false missing:false no-tool:false our-tool:false test:false] map[EMPTY:false SET:false UNSET:false]")
	broken := errors.New("broken")
	e.Shell.Run = func(context.Context, []string) ([]byte, error) { return nil, broken }
	if _, err := e.Probe(t.Context(), ask()); !errors.Is(err, broken) {
		t.Error("another failure of the shell is hidden")
	}
}

func TestHere(t *testing.T) {
	t.Setenv("PATH", tools(t))
	t.Setenv("SET", "1")
	f, err := probe.Here{Getenv: os.Getenv}.Probe(t.Context(), ask())
	check(t, f, err, runtime.GOOS, want)
}
