package byssh

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Addresses that the engines' own programs take, and those that could mean something else to ssh.
func TestParse(t *testing.T) {
	for address, want := range map[string]Host{
		"ssh://far.example":                       {Name: "far.example"},
		"ssh://far.example/":                      {Name: "far.example"},
		"ssh://me@far.example:2222":               {User: "me", Name: "far.example", Port: "2222"},
		"ssh://me@far.example/run/user/7/x.sock":  {User: "me", Name: "far.example", Socket: "/run/user/7/x.sock"},
		"ssh://[2001:db8::1]:22/run/docker.sock":  {Name: "2001:db8::1", Port: "22", Socket: "/run/docker.sock"},
		"ssh://far.example//run/../run/it's.sock": {Name: "far.example", Socket: "/run/it's.sock"},
	} {
		if h, err := Parse(address); err != nil || h != want {
			t.Errorf("%s: %+v, %v", address, h, err)
		}
	}
	for _, address := range []string{
		"ssh://", "ssh://-oProxyCommand=x", "ssh://-l@far.example", "ssh://me:secret@far.example", "tcp://far.example", "ssh://far.example?x=1", "ssh://far.example/x#y", "ssh://far example",
	} {
		if h, err := Parse(address); err == nil {
			t.Errorf("%s: %+v", address, h)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

// Options come before the host, and nothing that follows is taken for one.
func TestArguments(t *testing.T) {
	h := Host{User: "me", Name: "far.example", Port: "2222", Identity: "/key", Socket: "/run/it's.sock"}
	args := h.arguments([]string{"-N"}, h.DialStdio()...)
	i := slices.Index(args, "--")
	if i < 0 || args[i+1] != "far.example" || !slices.Contains(args[:i], "BatchMode=yes") || !slices.Contains(args[:i], "-N") {
		t.Fatalf("%q", args)
	}
	if got := strings.Join(args[i+2:], " "); got != `docker --host='unix:///run/it'\''s.sock' system dial-stdio` {
		t.Errorf("command %s", got)
	}
	for _, pair := range [][2]string{{"-l", "me"}, {"-p", "2222"}, {"-i", "/key"}} {
		if j := slices.Index(args, pair[0]); j < 0 || args[j+1] != pair[1] {
			t.Errorf("no %q in %q", pair, args)
		}
	}
}

// env is an environment in which ssh is a shell script.
func env(t *testing.T, script string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		if name == "PATH" {
			return dir
		}
		return ""
	}
}

// A connection carries both directions and half a close, and ends the program with it.
func TestRun(t *testing.T) {
	c, err := Host{Name: "far.example"}.Run(t.Context(), env(t, "exec /bin/cat"), "x")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("there and back ", 10_000)
	go func() {
		_, _ = io.WriteString(c, text)
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}()
	if got, err := io.ReadAll(c); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-c.(*conn).ended
}

// Closing interrupts a read, and ends a program that does not listen.
func TestCloseInterrupts(t *testing.T) {
	c, err := Host{Name: "far.example"}.Run(t.Context(), env(t, `trap "" TERM; echo x; while :; do read line || /bin/sleep 1; done`), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	_ = c.Close()
	if err := <-read; !errors.Is(err, os.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	select {
	case <-c.(*conn).ended:
	case <-time.After(20 * time.Second):
		t.Error("ssh lives")
	}
}

// What ssh says when it fails is the error, and a missing program there is told from other failures.
func TestFailures(t *testing.T) {
	for script, missing := range map[string]bool{"echo no route >&2; exit 255": false, "echo not found >&2; exit 127": true} {
		_, err := Host{Name: "far.example"}.Output(t.Context(), env(t, script), "x")
		var failed *Error
		if !errors.As(err, &failed) || failed.Said == "" || NoCommand(err) != missing {
			t.Errorf("%s: %v", script, err)
		}
		if _, err := NewTunnel(Host{Name: "far.example"}, env(t, script)).Dial(t.Context()); !errors.As(err, &failed) || failed.Said == "" {
			t.Errorf("%s: tunnel: %v", script, err)
		}
	}
	if _, err := (Host{Name: "far.example"}).Output(t.Context(), func(string) string { return "relative" }, "x"); err == nil {
		t.Error("ssh was found in a relative directory")
	}
}

// Directories of processes that have ended are removed, those in use and new ones are not.
func TestPrivateDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, held, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	dead, left, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	_ = left.Close()
	fresh, left, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	_ = left.Close()
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{used, dead} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	_, last, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	for dir, want := range map[string]bool{used: true, dead: false, fresh: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", dir, err, want)
		}
	}
}
