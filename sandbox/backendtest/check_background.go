package backendtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func backgroundChecks() []check {
	return []check{
		{name: "command", run: backgroundCommand},
		{name: "lease", rows: []string{"C083"}, run: backgroundLease},
		{name: "end-of-sandbox", rows: []string{"C063"}, run: backgroundEnd},
	}
}

// backgroundCommand starts, feeds, follows and kills.
func backgroundCommand(k *kit) {
	x := k.ensure()
	c := sandbox.NewCommands(x.Sandbox, sandbox.CommandsOptions{})
	info, err := c.Start(k.ctx, x.role("cat"), sandbox.Env{"SECRET": secretValue}, sandbox.CommandOptions{Stdin: true})
	k.must(err)
	var want strings.Builder
	var got []byte
	var cursor int64
	for i := range 50 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if _, err := c.WriteStdin(k.ctx, info.ID, []byte(line)); err != nil {
			k.Fatalf("WriteStdin: %v", err)
		}
		for int(cursor) < want.Len() {
			chunk, err := c.Follow(k.ctx, info.ID, sandbox.StreamStdout, cursor, 0)
			if err != nil || chunk.Dropped > 0 || chunk.End {
				k.Fatalf("Follow: %+v, %v", chunk, err)
			}
			got = append(got, chunk.Data...)
			cursor = chunk.Next
		}
	}
	if string(got) != want.String() {
		k.Errorf("followed %q", got)
	}
	k.must(c.CloseStdin(info.ID))
	info, err = c.Wait(k.ctx, info.ID)
	if err != nil || info.State != sandbox.CommandExited || *info.Status != (sandbox.ExitStatus{}) || info.Stdout != int64(want.Len()) {
		k.Errorf("ended %+v, %v", info, err)
	}
	info, err = c.Start(k.ctx, x.role("tree", x.witness("t"), "8"), nil, sandbox.CommandOptions{})
	k.must(err)
	if _, err := c.Follow(k.ctx, info.ID, sandbox.StreamStdout, 0, 0); err != nil {
		k.Errorf("Follow: %v", err)
	}
	if k.features.ProcessCleanup {
		if res, err := c.Kill(k.ctx, info.ID, 0); err != nil || res.Outcome != sandbox.TerminationGone {
			k.Errorf("Kill = %+v, %v", res, err)
		}
		k.allDead("killed", "t")
		if info, err := c.Get(info.ID); err != nil || info.State != sandbox.CommandKilled {
			k.Errorf("killed %+v, %v", info, err)
		}
	}
	k.must(c.Close(k.ctx))
}

// backgroundLease: a command dies with its client, or stays, as was asked.
func backgroundLease(k *kit) {
	x := k.ensure()
	c := sandbox.NewCommands(x.Sandbox, sandbox.CommandsOptions{})
	client, leave := context.WithCancel(k.ctx)
	defer leave()
	start := func(name string, opts sandbox.CommandOptions) sandbox.CommandInfo {
		k.Helper()
		info, err := c.Start(k.ctx, x.role("wait", x.witness(name)), nil, opts)
		k.must(err)
		_, err = c.Follow(k.ctx, info.ID, sandbox.StreamStdout, 0, 0)
		k.must(err)
		return info
	}
	bound := start("bound", sandbox.CommandOptions{Client: client})
	kept := start("kept", sandbox.CommandOptions{KeepUntilEnd: true})
	leave()
	if info, err := c.Wait(k.ctx, bound.ID); err != nil || info.State != sandbox.CommandKilled {
		k.Errorf("a command without its client: %+v, %v", info, err)
	}
	k.allDead("the client left", "bound")
	k.must(c.Close(k.ctx))
	if len(k.alive("kept")) != 1 {
		k.Error("what was to be kept is gone")
	}
	k.must(x.Close())
	k.allDead("the sandbox was closed", "")
	if info, err := c.Wait(k.ctx, kept.ID); err != nil || info.State == sandbox.CommandRunning || info.Status == nil {
		k.Errorf("after the end of the sandbox: %+v, %v", info, err)
	}
}

// backgroundEnd: the end of a sandbox is the end of its commands, and none of them is said to
// have ended well.
func backgroundEnd(k *kit) {
	x := k.ensure()
	c := sandbox.NewCommands(x.Sandbox, sandbox.CommandsOptions{})
	info, err := c.Start(k.ctx, x.role("wait", x.witness("w")), nil, sandbox.CommandOptions{})
	k.must(err)
	_, err = c.Follow(k.ctx, info.ID, sandbox.StreamStdout, 0, 0)
	k.must(err)
	k.must(k.backend.Stop(k.ctx, x.id))
	info, err = c.Wait(k.ctx, info.ID)
	if err != nil || info.Status == nil || info.Status.Code == 0 && !info.Status.Unknown {
		k.Errorf("%+v, %v", info, err)
	}
	if chunk, err := c.Read(info.ID, sandbox.StreamStdout, 0, 0); err != nil || string(chunk.Data) != "ready\n" || !chunk.End {
		k.Errorf("output so far: %+v, %v", chunk, err)
	}
	if _, err := c.Start(k.ctx, x.role("true"), nil, sandbox.CommandOptions{}); !errors.Is(err, sandbox.ErrGone) {
		k.Errorf("one more command: %v", err)
	}
	k.must(c.Close(k.ctx))
}
