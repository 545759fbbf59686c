package bridgetest

import (
	"context"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/workberth/workberth/fsbridge"
)

// pinnedChecks prove that bytes and true location come from one open file. FSB-03 to FSB-06
func pinnedChecks() []check {
	need := caps(fsbridge.CapReadFileWithSource)
	return []check{
		{name: "plain", rows: []string{"FSB-03", "FSB-06"}, needs: need, run: pinnedPlain},
		{name: "alias", rows: []string{"FSB-04", "FSB-06"}, needs: need, run: pinnedAlias},
		{name: "other-mount", rows: []string{"FSB-06"}, needs: need, opts: Options{Bind: true}, run: pinnedOtherMount},
		{name: "odd-names", rows: []string{"FSB-03"}, needs: need, run: pinnedOddNames},
		{name: "errors", rows: []string{"FSB-03"}, needs: need, run: pinnedErrors},
		{name: "race-link", rows: []string{"FSB-03", "FSB-05"}, needs: need, run: pinnedRaceLink},
		{name: "race-exchange", rows: []string{"FSB-05"}, needs: need, run: pinnedRaceExchange},
		{name: "race-replaced", rows: []string{"FSB-05"}, needs: need, run: pinnedRaceReplaced},
	}
}

// wantSource demands that f is the file at the workspace path rel.
func (k *kit) wantSource(what string, f fsbridge.SourcedFile, rel, content string) {
	k.Helper()
	if string(f.Data) != content {
		k.Errorf("%s: data %s, want %s", what, brief(f.Data), brief([]byte(content)))
	}
	if f.ResolvedPath != k.abs(rel) {
		k.Errorf("%s: resolved path %q, want %q", what, f.ResolvedPath, k.abs(rel))
	}
	if f.WorkspaceRelativePath != rel {
		k.Errorf("%s: workspace-relative path %q, want %q", what, f.WorkspaceRelativePath, rel)
	}
	if !f.Info.IsRegular() || f.Info.Size != int64(len(content)) {
		k.Errorf("%s: info %+v", what, f.Info)
	}
}

func pinnedPlain(k *kit) {
	k.file("MEMORY.md", "remember")
	k.file("a/b/c.md", "deep")
	k.file("empty", "")
	for _, c := range []struct{ p, rel, content string }{
		{"MEMORY.md", "MEMORY.md", "remember"}, {"a/b/c.md", "a/b/c.md", "deep"}, {"empty", "empty", ""},
		{k.abs("MEMORY.md"), "MEMORY.md", "remember"},
	} {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, c.p)
		k.ok("read "+c.p, err)
		k.wantSource(c.p, f, c.rel, c.content)
	}
}

// pinnedAlias reads a protected file under other names; the answer is always its own path. FSB-04
func pinnedAlias(k *kit) {
	k.file("MEMORY.md", "remember")
	k.dir("d/e")
	for name, target := range map[string]string{
		"notes.md": "MEMORY.md", "abs.md": k.abs("MEMORY.md"), "chain.md": "notes.md", "d/up.md": "../MEMORY.md",
		"d/e/up": "../..", "rootlink": k.env.Workspace, "dots": "d/../MEMORY.md", "self": ".",
	} {
		k.link(name, target)
	}
	for _, p := range []string{
		"notes.md", "abs.md", "chain.md", "d/up.md", "d/e/up/MEMORY.md", "rootlink/MEMORY.md", "dots", "self/self/MEMORY.md",
		"./MEMORY.md", "d/../MEMORY.md", "d//..//./MEMORY.md", k.abs("d/e/../../MEMORY.md"), k.abs("notes.md"),
		"rootlink/d/e/up/notes.md",
	} {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, p)
		k.ok("read "+p, err)
		k.wantSource(p, f, "MEMORY.md", "remember")
	}
	// A hard link is a file of its own name: the path is the name it was opened by.
	if k.try("hard.md", Node{HardLink: k.abs("MEMORY.md")}) {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "hard.md")
		k.ok("read hard.md", err)
		k.wantSource("hard.md", f, "hard.md", "remember")
	}
}

// pinnedOtherMount reads outside the workspace, directly and through a link from inside: the
// relative path stays empty. FSB-06
func pinnedOtherMount(k *kit) {
	k.file(k.env.Bind+"/shared.md", "shared")
	k.link("alias.md", k.env.Bind+"/shared.md")
	for _, p := range []string{k.env.Bind + "/shared.md", "alias.md"} {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, p)
		k.ok("read "+p, err)
		if string(f.Data) != "shared" || f.ResolvedPath != k.env.Bind+"/shared.md" || f.WorkspaceRelativePath != "" {
			k.Errorf("read %q: %+v", p, f)
		}
	}
}

// pinnedOddNames reads files whose names look like something the kernel says about deleted or
// moved files, or that need escaping. The suffix must not be taken for a remark.
func pinnedOddNames(k *kit) {
	for _, name := range []string{
		"x (deleted)", "y\nz", `b\012s`, "sp ace", "(unreachable)", "tab\tx", "bad\xff", "d (deleted)/f", "//deleted",
	} {
		name = path.Clean(strings.TrimLeft(name, "/"))
		if !k.try(name, Node{Type: fsbridge.TypeRegular, Data: []byte(name)}) {
			continue
		}
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, name)
		k.ok("read "+fsbridge.DisplayPath(name), err)
		k.wantSource(fsbridge.DisplayPath(name), f, name, name)
	}
}

func pinnedErrors(k *kit) {
	k.dir("d")
	_, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "absent")
	k.refused("read absent", err, fs.ErrNotExist)
	_, err = fsbridge.ReadFileWithSource(k.ctx, k.b, "d")
	k.refused("read a directory", err, fsbridge.ErrNotRegular)
	k.link("out", relative(k.env.Workspace, k.env.Out)+"/s")
	f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "out")
	k.refused("read out", err, fsbridge.ErrOutsideRoot)
	if len(f.Data) > 0 || f.ResolvedPath != "" || f.WorkspaceRelativePath != "" {
		k.Errorf("read out: an error and %+v", f)
	}
}

// attack runs swaps until stop is called, which tells the number of exchanges.
func (k *kit) attack(swaps ...Swap) (stop func() int64) {
	k.Helper()
	for i := range swaps {
		swaps[i] = Swap{k.abs(swaps[i].A), k.abs(swaps[i].B)}
	}
	run := k.env.Attack
	if run == nil {
		hp, ok := k.env.Oracle.(HostPather)
		if !ok {
			k.Skip("this environment has no attacker and its files do not lie on this machine")
		}
		host := make([]Swap, len(swaps))
		for i, s := range swaps {
			a, okA := hp.HostPath(s.A)
			b, okB := hp.HostPath(s.B)
			if !okA || !okB {
				k.Fatalf("oracle: no host path for %q or %q", s.A, s.B)
			}
			host[i] = Swap{a, b}
		}
		swaps, run = host, SwapLoop
	}
	ctx, cancel := context.WithCancel(k.ctx)
	var n int64
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err = run(ctx, swaps)
	}()
	var once sync.Once
	stop = func() int64 {
		once.Do(func() {
			cancel()
			<-done
			if err != nil {
				k.Errorf("attacker: %v", err)
			}
		})
		return n
	}
	k.Cleanup(func() { stop() })
	return stop
}

// pinnedRaceLink re-points a link while it is read. Bytes and path must name the same file. FSB-05
func pinnedRaceLink(k *kit) {
	a, b := strings.Repeat("A", 9000), strings.Repeat("B", 7000)
	k.file("a.md", a)
	k.file("MEMORY.md", b)
	k.link("l", "a.md")
	k.link("m", "MEMORY.md")
	stop := k.attack(Swap{"l", "m"})
	seen := map[string]int{}
	for range k.target.attackOps(k.T) {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "l")
		k.ok("read", err)
		switch f.ResolvedPath {
		case k.abs("a.md"):
			k.wantSource("race", f, "a.md", a)
		case k.abs("MEMORY.md"):
			k.wantSource("race", f, "MEMORY.md", b)
		default:
			k.Errorf("resolved path %q is neither file", f.ResolvedPath)
		}
		seen[f.WorkspaceRelativePath]++
		if k.Failed() {
			break
		}
	}
	k.Logf("%d exchanges, results %v", stop(), seen)
}

// pinnedRaceExchange exchanges a file with a link to a protected one. Whenever the protected
// bytes come, so does the protected path. FSB-05
func pinnedRaceExchange(k *kit) {
	k.file("x", "harmless")
	k.file("MEMORY.md", "protected")
	k.link("y", "MEMORY.md")
	stop := k.attack(Swap{"x", "y"})
	for range k.target.attackOps(k.T) {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "x")
		if err != nil {
			continue // refusing to decide is allowed
		}
		switch string(f.Data) {
		case "harmless":
			if r := f.WorkspaceRelativePath; r != "x" && r != "y" {
				k.Errorf("harmless bytes at %q", r)
			}
		case "protected":
			k.wantSource("race", f, "MEMORY.md", "protected")
		default:
			k.Errorf("bytes of neither file: %s", brief(f.Data))
		}
		if k.Failed() {
			break
		}
	}
	k.Logf("%d exchanges", stop())
}

// pinnedRaceReplaced replaces the file by rename while it is read: the path of a file that is
// gone by now must not carry the kernel's remark. FSB-05
func pinnedRaceReplaced(k *kit) {
	k.file("f", "first")
	stop := make(chan struct{})
	done := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			if k.env.Oracle.Make(k.abs("next"), Node{Type: fsbridge.TypeRegular, Data: []byte("again")}) != nil ||
				k.env.Oracle.Rename(k.abs("next"), k.abs("f")) != nil {
				done <- -1
				return
			}
		}
	}()
	good := 0
	n := k.target.attackOps(k.T)
	for range n {
		f, err := fsbridge.ReadFileWithSource(k.ctx, k.b, "f")
		if err != nil {
			k.refused("race", err)
			continue
		}
		good++
		if f.ResolvedPath != k.abs("f") || f.WorkspaceRelativePath != "f" || len(f.Data) != 5 {
			k.Errorf("race: %+v", f)
			break
		}
	}
	close(stop)
	if made := <-done; made < 0 {
		k.Error("oracle: could not replace the file")
	} else {
		k.Logf("%d replacements, %d of %d reads succeeded", made, good, n)
	}
	if good == 0 {
		k.Error("no read succeeded")
	}
}
