package containertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/sandbox"
)

// caseSecrets: values of variables, input and files of a command are in nothing that the engine tells,
// and in no argument of a process of this machine; inside they are exact. C071
func caseSecrets(k *kit) {
	const secret = "-----BEGIN-----\nsecret-of-the-case\n-----END-----\n"
	begin := time.Now().Add(-time.Second).Unix()
	sb := k.ensure(k.b, func(c *sandbox.Config) { c.Env = map[string]string{"CONFIGURED": secret} })
	id := sb.Info().Runtime["container"]
	br, err := sb.Bridge(k.ctx, nil)
	k.must(err)
	k.must(br.WriteFile(k.ctx, "f", []byte(secret)))
	out := sandbox.NewOutputBuffer(0)
	first := &firstLine{w: out, seen: make(chan struct{})}
	r, err := sandbox.Start(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", `printf %s "$CONFIGURED$OWN"; read x; sleep 600`}},
		sandbox.Env{"OWN": secret, "E": "", "Q": "a\"b'c$HOME`id`", "U": "é\xff", "S": "  x  ", "P": "a=b=c"},
		sandbox.IO{Stdin: strings.NewReader(secret), Stdout: first}, sandbox.StartOptions{})
	k.must(err)
	<-first.seen
	until := time.Now().Add(time.Second).Unix()
	told := map[string]string{
		"inspect": k.inspect(id),
		"list":    string(k.api(http.MethodGet, "/containers/json?all=1")),
		"logs":    string(k.api(http.MethodGet, "/containers/"+id+"/logs?stdout=1&stderr=1")),
		"events":  string(k.api(http.MethodGet, fmt.Sprintf("/events?since=%d&until=%d", begin, until))),
	}
	top, status := k.call(k.ctx, http.MethodGet, "/containers/"+id+"/top?ps_args="+url.QueryEscape("-ef"))
	if told["top"] = string(top); status != http.StatusOK && k.pauses() { // it takes a control group
		k.Errorf("top: %d %s", status, top)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	k.must(err)
	for _, name := range lines {
		data, _ := os.ReadFile(name) // it may have ended
		told["arguments"] += string(data) + "\n"
	}
	for what, text := range told {
		if strings.Contains(text, "secret-of-the-case") {
			k.Errorf("%s tells a secret", what)
		}
	}
	infos, err := k.b.List(k.ctx)
	if text := fmt.Sprintf("%+v %+v", infos, sb.Info()); err != nil || strings.Contains(text, "secret-of-the-case") {
		k.Errorf("the description of the sandbox tells a secret (%v)", err)
	}
	if !strings.Contains(told["events"], id) {
		k.Logf("the engine has no events yet: %.200q", told["events"]) // some write them late, or into a file that others have turned
	}
	// What lets the helper in is worth nothing any more, and gone.
	guest := filepath.Join(k.dir, "state", "sandboxes", string(sb.Info().ID), "guest")
	entries, err := os.ReadDir(guest)
	k.must(err)
	for _, e := range entries {
		if e.Name() != "berth-guest" {
			k.Errorf("left in the helper's directory: %s", e.Name())
		}
	}
	_, err = r.Terminate(k.ctx, 0)
	k.must(err)
	_, err = r.Wait(k.ctx)
	k.must(err)
	out.End()
	if got := string(out.Output().Bytes()); got != secret+secret {
		k.Errorf("the command has seen %q", got)
	}
}

// caseForeignLabels: a container that carries our labels and is not the sandbox's is not taken for it,
// not listed and not ended. C057
func caseForeignLabels(k *kit) {
	sb := k.ensure(k.b)
	c := k.containerOf(sb)
	foreign, err := k.engine.Create(k.ctx, container.Spec{
		Name: c.Name + "-foreign", Image: Image, Argv: []string{"/bin/sleep", "600"}, User: "0:0", Workdir: "/", Network: "none", Labels: c.Labels,
	})
	k.must(err)
	k.must(k.engine.Start(k.ctx, foreign.ID))
	if info := k.info(k.b); info.State != sandbox.StateRunning {
		k.Errorf("listed as %q: %s", info.State, info.Detail)
	}
	k.must(sb.Close())
	sb = k.ensure(k.open("state")) // another process, that looks after what others have left
	if got := k.containerOf(sb); got.ID != c.ID {
		k.Errorf("container %s, was %s", got.ID, c.ID)
	}
	k.must(k.b.Remove(k.ctx, sb.Info().ID))
	if got, err := k.engine.Inspect(k.ctx, foreign.ID); err != nil || got.Status != container.StatusRunning {
		k.Errorf("the foreign container: %+v, %v", got, err)
	}
	if infos, err := k.b.List(k.ctx); err != nil || len(infos) != 0 {
		k.Errorf("listed after the removal: %+v, %v", infos, err)
	}
}

// casePrune: what nobody has used for long goes with its container; what somebody holds, and what
// belongs to another directory of records, stays. C057
func casePrune(k *kit) {
	discarder, ok := k.b.(interface {
		Discard(ctx context.Context, claim *sandbox.Claim) error
	})
	if !ok {
		k.Fatal("the backend cannot discard")
	}
	old := k.ensure(k.b)
	gone := k.containerOf(old)
	k.must(old.Close())
	held := k.ensure(k.b, func(c *sandbox.Config) { c.ReadOnlyRoot = false })
	other := k.ensure(k.open("other"))
	kept := k.containerOf(other)
	k.must(other.Close())
	registry, err := sandbox.OpenRegistry(filepath.Join(k.dir, "state"), sandbox.RegistryOptions{})
	k.must(err)
	for round, want := range []int{1, 0} {
		pruned, err := registry.Prune(k.ctx, sandbox.PruneOptions{
			Backend: k.b.Name(), Default: sandbox.Prune{IdleHours: 1e-9}, Remove: discarder.Discard,
		})
		if err != nil || len(pruned) != want || want > 0 && (pruned[0].Info.ID != old.Info().ID || pruned[0].Err != nil) {
			k.Errorf("round %d: %+v, %v", round, pruned, err)
		}
	}
	if _, err := k.engine.Inspect(k.ctx, gone.ID); !errors.Is(err, container.ErrNotFound) {
		k.Errorf("the container of what was pruned: %v", err)
	}
	if _, err := k.engine.Inspect(k.ctx, kept.ID); err != nil {
		k.Errorf("the container of another directory of records: %v", err)
	}
	k.wantOutput(held, "echo on", "on")
}

// caseProcesses: who is at the limit of processes is told so, and the next one is not affected. C083
func caseProcesses(k *kit) {
	if !k.b.Features().PidsLimit {
		k.Skip("the engine keeps no limit on processes")
	}
	sb := k.ensure(k.b, func(c *sandbox.Config) { c.Limits.Pids = 32 })
	for round := range 3 {
		s := k.start(sb, "while sleep 600 & do :; done; wait")
		var refused error
		for range 100 {
			if _, refused = sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/true"}}, nil, sandbox.RunOptions{Timeout: 5 * time.Second}); refused != nil {
				break
			}
		}
		if refused != nil && !strings.Contains(refused.Error(), "limit") {
			k.Errorf("round %d: at the limit: %v", round, refused)
		}
		br, err := sb.Bridge(k.ctx, nil)
		k.must(err)
		if err := br.WriteFile(k.ctx, "f", []byte("x")); err != nil {
			k.Errorf("round %d: a write at the limit: %v", round, err)
		}
		res, err := s.Terminate(k.ctx, 100*time.Millisecond)
		if err != nil || res.Outcome != sandbox.TerminationGone {
			k.Fatalf("round %d: %+v, %v", round, res, err)
		}
		k.wantOutput(sb, "ps | grep -v grep | grep -c 'sleep 600'", "0")
	}
}

// caseComplete: the whole output and the exit code, fifty times, with others at work. C067
func caseComplete(k *kit) {
	sb := k.ensure(k.b)
	want := bytes.Repeat([]byte("0123456789\n"), 500003/11+1)[:500003]
	var wg sync.WaitGroup
	slots := make(chan struct{}, 5)
	for i := range 50 {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			size, code := 500003, 0
			if i%2 == 1 {
				size, code = 70001, 3
			}
			script := fmt.Sprintf("busybox yes 0123456789 | busybox head -c %d | dd bs=%d 2>/dev/null; exit %d", size, 1+4096*(i%3), code)
			if i%10 == 0 {
				script = fmt.Sprintf("busybox yes 0123456789 | busybox head -c %d | dd bs=11 2>/dev/null; exit %d", size, code)
			}
			res, err := sandbox.Run(k.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", script}}, nil, sandbox.RunOptions{})
			if err != nil || res.Status != (sandbox.ExitStatus{Code: code}) || !bytes.Equal(res.Stdout.Bytes(), want[:size]) {
				k.Errorf("round %d: %d bytes, want %d; %+v, %v", i, res.Stdout.Total, size, res.Status, err)
			}
		})
	}
	wg.Wait()
}
