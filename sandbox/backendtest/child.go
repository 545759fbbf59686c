package backendtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// childVar holds the part that this process plays for a check in another one.
const childVar = "BERTH_BACKENDTEST_CHILD"

// part is what a child plays.
type part struct {
	Test      string // the test that calls Run
	Role      string // "hold" or "churn"
	State     string
	Workspace string
	Word      string
	Prog      string
}

// child is another process that holds a sandbox.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.WriteCloser
	log   *bytes.Buffer
}

// startChild starts this test program again in a role. It is killed at the end of the check.
func (k *kit) startChild(role, ws string) *child {
	k.Helper()
	name := k.T.Name()
	run := strings.TrimSuffix(name, "/"+k.name) // the name of the test that called Run
	data, err := json.Marshal(part{Test: run, Role: role, State: k.state, Workspace: ws, Word: k.word, Prog: k.prog})
	k.must(err)
	var pattern []string
	for e := range strings.SplitSeq(run, "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(e)+"$")
	}
	cmd := exec.Command(os.Args[0], "-test.run="+strings.Join(pattern, "/"), "-test.timeout=10m")
	cmd.Env = append(os.Environ(), childVar+"="+string(data))
	cmd.WaitDelay = time.Second // what it leaves behind may hold its standard error
	c := &child{cmd: cmd, log: &bytes.Buffer{}}
	cmd.Stderr = c.log
	out, err := cmd.StdoutPipe()
	k.must(err)
	c.stdin, err = cmd.StdinPipe()
	k.must(err)
	c.lines = bufio.NewScanner(out)
	k.must(cmd.Start())
	k.Cleanup(func() { c.kill() })
	return c
}

// says waits for a line of the child and returns what follows the word.
func (k *kit) says(c *child, word string) string {
	k.Helper()
	for c.lines.Scan() {
		if rest, ok := strings.CutPrefix(c.lines.Text(), "CHILD "+word); ok {
			return strings.TrimSpace(rest)
		}
	}
	c.kill()
	k.Fatalf("the other owner did not say %q; its log:\n%s", word, c.log)
	return ""
}

// kill ends the child as nothing can be prepared for.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// playChild plays a part, if this process was started for one of this test.
func playChild(t *testing.T, target *Target) bool {
	t.Helper()
	text := os.Getenv(childVar)
	if text == "" {
		return false
	}
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("backendtest: %s: %v", childVar, err)
	}
	if p.Test != t.Name() {
		return false
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := target.New(t, Options{StateDir: p.State, Logger: log})
	spec := plainSpec(p.Workspace)
	prog := target.complete(t, p.Prog, b.Features(), &spec)
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, "CHILD "+format+"\n", args...) }
	switch p.Role {
	case "hold":
		p.hold(t, b, spec, prog, say)
	case "churn":
		p.churn(t, b, spec, prog, say)
	default:
		t.Fatalf("backendtest: no role %q", p.Role)
	}
	return true
}

// witness is the path inside of a witness.
func (p part) witness(sb sandbox.Sandbox, name string) string {
	m, _ := sb.Info().Mounts.Workspace()
	return path.Join(m.Path, witnessDir, p.Word+"-"+name)
}

// hold has a sandbox with a tree and a kept process, answers a ping by running a command, and
// ends with its standard input.
func (p part) hold(t *testing.T, b sandbox.Backend, spec sandbox.Spec, prog string, say func(string, ...any)) {
	ctx := t.Context()
	sb, err := b.Ensure(ctx, spec)
	if err != nil {
		t.Fatal(explain(err))
	}
	defer sb.Close()
	name := path.Base(p.Workspace)
	ready := make(chan struct{}, 1)
	tree := sandbox.Command{Argv: []string{prog, "tree", p.witness(sb, name+"-tree"), "8"}}
	_, err = sandbox.Start(ctx, sb, tree, nil, sandbox.IO{Stdout: writerFunc(func(b []byte) (int, error) {
		ready <- struct{}{}
		return len(b), nil
	})}, sandbox.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	kept := sandbox.Command{Argv: []string{prog, "daemon", p.witness(sb, name+"-kept")}, KeepDescendants: true}
	if res, err := sandbox.Run(ctx, sb, kept, nil, sandbox.RunOptions{}); err != nil || res.Status.Code != 0 {
		t.Fatalf("%+v, %v", res.Status, err)
	}
	say("ready %s", sb.Info().ID)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		res, err := sandbox.Run(ctx, sb, sandbox.Command{Argv: []string{prog, "true"}}, nil, sandbox.RunOptions{})
		say("pong %d %v", res.Status.Code, err)
	}
}

// tornSize is the size of the file that churn writes again and again, in bytes.
const tornSize = 200_000

// churn makes and ends sandboxes, writes files and runs commands, until it is killed.
func (p part) churn(t *testing.T, b sandbox.Backend, spec sandbox.Spec, prog string, say func(string, ...any)) {
	ctx := t.Context()
	for round := 0; ; round++ {
		sb, err := b.Ensure(ctx, spec)
		if err != nil {
			t.Fatal(explain(err))
		}
		bridge, err := sb.Bridge(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			content := bytes.Repeat([]byte{byte('a' + (round+i)%26)}, tornSize)
			if err := bridge.WriteFile(ctx, "torn", content); err != nil {
				t.Fatal(err)
			}
			if _, err := fsbridge.WriteStream(ctx, bridge, fmt.Sprintf("new-%d", i), bytes.NewReader(content), fsbridge.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			say("churning")
		}
		cut, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		_, _ = sandbox.Run(cut, sb, sandbox.Command{Argv: []string{prog, "tree", p.witness(sb, "churn"), "3"}}, nil, sandbox.RunOptions{})
		cancel()
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
