package bubblewrap

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// roles are what the test program can be besides itself.
func roles() map[string]func(args []string) int {
	return map[string]func([]string) int{"owner": ownerRole, "forbid": forbidRole}
}

// ownerRole holds a sandbox as a process of its own: owner STATE HELPER WORKSPACE
// SESSION. It says "ready ID TAG" and then runs each line of its input as a script,
// answering "done", until its input ends; "close" closes the sandbox first.
func ownerRole(args []string) int {
	fail := func(err error) int {
		fmt.Println("error", err)
		return 1
	}
	b, err := New(Options{StateDir: args[0], HelperPath: args[1]})
	if err != nil {
		return fail(err)
	}
	ctx := context.Background()
	sb, err := b.Ensure(ctx, sandbox.Spec{
		Scope: sandbox.ScopeSession, Session: args[3], Workspace: args[2], Config: sandbox.DefaultConfig(),
	})
	if err != nil {
		return fail(err)
	}
	fmt.Println("ready", sb.Info().ID, sb.Info().Runtime["tag"])
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "close" {
			if err := sb.Close(); err != nil {
				return fail(err)
			}
			fmt.Println("done")
			return 0
		}
		_, err := sandbox.Start(ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", lines.Text()}}, nil, sandbox.IO{}, sandbox.StartOptions{})
		if err != nil {
			return fail(err)
		}
		fmt.Println("done")
	}
	return 0
}

// owner is a process that plays ownerRole.
type owner struct {
	cmd *exec.Cmd
	in  *bufio.Writer
	out *bufio.Scanner
	id  sandbox.ID
	tag string
}

// startOwner starts one, and returns before it is ready.
func (r *rig) startOwner(t testing.TB, session string) *owner {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", r.state, helper(t), r.ws, session)
	cmd.Env = append(os.Environ(), roleVar+"=owner")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{cmd: cmd, in: bufio.NewWriter(stdin), out: bufio.NewScanner(stdout)}
	t.Cleanup(o.kill)
	return o
}

// ready waits until it holds its sandbox.
func (o *owner) ready(t testing.TB) *owner {
	t.Helper()
	if !o.out.Scan() {
		t.Fatalf("the owner ended: %v", o.out.Err())
	}
	if _, err := fmt.Sscanf(o.out.Text(), "ready %s %s", &o.id, &o.tag); err != nil {
		t.Fatalf("the owner said %q", o.out.Text())
	}
	return o
}

// tell gives it a line and waits for its answer.
func (o *owner) tell(t testing.TB, line string) {
	t.Helper()
	if _, err := o.in.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := o.in.Flush(); err != nil {
		t.Fatal(err)
	}
	if !o.out.Scan() || strings.TrimSpace(o.out.Text()) != "done" {
		t.Fatalf("the owner answered %q to %q", o.out.Text(), line)
	}
}

// kill ends it without warning, and waits.
func (o *owner) kill() {
	_ = o.cmd.Process.Kill()
	_ = o.cmd.Wait()
}
