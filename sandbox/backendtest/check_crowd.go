package backendtest

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

func crowdChecks() []check {
	return []check{
		{name: "commands", rows: []string{"C067"}, run: crowdCommands},
		{name: "files-and-commands", run: crowdMixed},
		{name: "sandboxes", run: crowdSandboxes},
	}
}

// crowdCommands runs 200 commands at once, a MiB of output each.
func crowdCommands(k *kit) {
	x := k.ensure(unlimited)
	var wg sync.WaitGroup
	for i := range k.rounds(200, 40) {
		wg.Go(func() {
			size, code := 1<<20+i, i%7
			res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("emit", fmt.Sprint(size), fmt.Sprint(i), fmt.Sprint(code)), nil, sandbox.RunOptions{OutputLimit: 4 << 20})
			if err != nil || res.Status.Code != code {
				k.Errorf("command %d: %+v, %v", i, res.Status, err)
				return
			}
			if !bytes.Equal(res.Stdout.Bytes(), pattern(size)) || !bytes.Equal(res.Stderr.Bytes(), pattern(i)) {
				k.Errorf("command %d: %d and %d bytes, want %d and %d exactly", i, res.Stdout.Total, res.Stderr.Total, size, i)
			}
		})
	}
	wg.Wait()
	if n := x.OpenTokens(); n != 0 {
		k.Errorf("%d open tokens", n)
	}
	x.works()
}

// crowdMixed reads and writes while commands come and go.
func crowdMixed(k *kit) {
	x := k.ensure(unlimited)
	b := x.bridge()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range k.rounds(20, 5) {
				name, content := fmt.Sprintf("d%d/f", i), fmt.Sprintf("%d-%d", i, n)
				if err := b.WriteFile(k.ctx, name, []byte(content)); err != nil {
					k.Errorf("write: %v", err)
					return
				}
				res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("read", x.inside(name)), nil, sandbox.RunOptions{})
				if err != nil || string(res.Stdout.Bytes()) != content {
					k.Errorf("a command reads %q, %v; want %q", res.Stdout.Bytes(), err, content)
				}
			}
		})
	}
	wg.Wait()
}

// crowdSandboxes has many sandboxes at once, each with its own workspace.
func crowdSandboxes(k *kit) {
	most := k.target.Sandboxes
	if most <= 0 {
		most = 64
	}
	most = k.knob("BERTH_SANDBOXES", k.rounds(most, 8))
	boxes := make([]*box, most)
	var wg sync.WaitGroup
	for i := range boxes {
		ws := k.workspace(fmt.Sprintf("ws%d", i))
		wg.Go(func() {
			x, err := k.tryEnsure(k.backend, k.spec(func(s *sandbox.Spec) { s.Workspace = ws }))
			if err != nil {
				k.Errorf("sandbox %d: %v", i, explain(err))
				return
			}
			boxes[i] = x
			res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("write", x.inside("me"), fmt.Sprint(i)), nil, sandbox.RunOptions{})
			if err != nil || res.Status.Code != 0 {
				k.Errorf("sandbox %d: %+v, %v", i, res.Status, err)
			}
		})
	}
	wg.Wait()
	if k.Failed() {
		return
	}
	ids := map[sandbox.ID]bool{}
	for i, x := range boxes {
		ids[x.id] = true
		wg.Go(func() {
			res, err := sandbox.Run(k.ctx, x.Sandbox, x.role("read", x.inside("me")), nil, sandbox.RunOptions{})
			if err != nil || string(res.Stdout.Bytes()) != fmt.Sprint(i) {
				k.Errorf("sandbox %d: %q, %v", i, res.Stdout.Bytes(), err)
			}
		})
	}
	wg.Wait()
	if infos, err := k.backend.List(k.ctx); err != nil || len(infos) != most || len(ids) != most {
		k.Errorf("%d listed, %d ids, want %d (%v)", len(infos), len(ids), most, err)
	}
}
