package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/sandbox"
	"github.com/workberth/workberth/skills"
	"github.com/workberth/workberth/skills/mirror"
)

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(p)
	if err := os.WriteFile(p, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func skill(name string) string { return "---\nname: " + name + "\ndescription: d\n---\n" }

func open(t *testing.T, dir string, kind fsbridge.MountKind) *local.Bridge {
	t.Helper()
	b, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: kind}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// place is a machine with installed skills and a sandbox.
type place struct {
	src, ws string
	from    *local.Bridge
	to      fsbridge.Bridge
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{src: t.TempDir(), ws: t.TempDir()}
	write(t, p.src, "one/SKILL.md", skill("one"), 0o644)
	write(t, p.src, "one/scripts/run.sh", "echo 1", 0o755)
	write(t, p.src, "one/empty", "", 0o644)
	write(t, p.src, "two/skill.md", skill("two"), 0o644)
	write(t, p.src, "bad/SKILL.md", skill("../../../tmp/pwnskill"), 0o644)
	p.from = open(t, p.src, fsbridge.MountBind)
	p.to = open(t, p.ws, fsbridge.MountWorkspace)
	return p
}

func (p *place) list(t *testing.T, policy skills.Policy) skills.Listing {
	t.Helper()
	d, err := skills.Discover(t.Context(), p.from, []skills.Root{{Path: p.src, Kind: skills.KindInstalled}}, nil, skills.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(policy, d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (p *place) sync(t *testing.T, policy skills.Policy) mirror.Result {
	t.Helper()
	res, err := mirror.Sync(t.Context(), p.list(t, policy), p.from, p.to, mirror.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// tree lists the files below the workspace with their modes.
func (p *place) tree(t *testing.T) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(p.ws, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.ws, path)
		if d.Name() != ".manifest.json" {
			out = append(out, fmt.Sprintf("%s %o", rel, info.Mode().Perm()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func TestSync(t *testing.T) {
	p := newPlace(t)
	res := p.sync(t, skills.Policy{})
	want := ".berth/skills/one/SKILL.md 444\n.berth/skills/one/empty 444\n.berth/skills/one/scripts/run.sh 555\n.berth/skills/two/SKILL.md 444"
	if got := p.tree(t); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if len(res.Written) != 4 || res.Unchanged != 0 || fmt.Sprint(res.Skills) != "[one two]" {
		t.Errorf("%+v", res)
	}
	if res := p.sync(t, skills.Policy{}); len(res.Written) != 0 || res.Unchanged != 4 {
		t.Errorf("again: %+v", res)
	}
	// Only what differs is written, also when it was changed there, or lost its mode.
	write(t, p.src, "one/scripts/run.sh", "echo 2", 0o755)
	write(t, p.ws, ".berth/skills/two/SKILL.md", "tampered", 0o644)
	if err := os.Chmod(filepath.Join(p.ws, ".berth/skills/one/empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	if res := p.sync(t, skills.Policy{}); fmt.Sprint(res.Written) != "[one/empty one/scripts/run.sh two/SKILL.md]" || p.tree(t) != want {
		t.Errorf("%+v\n%s", res, p.tree(t))
	}
	// What is no longer wanted goes, with its folder; what was changed there meanwhile stays.
	write(t, p.ws, ".berth/skills/one/empty", "mine", 0o644)
	res = p.sync(t, skills.Policy{Deny: []string{"one"}})
	if fmt.Sprint(res.Removed, res.Kept) != "[one/SKILL.md one/scripts/run.sh] [one/empty]" || p.tree(t) != ".berth/skills/one/empty 644\n.berth/skills/two/SKILL.md 444" {
		t.Errorf("%+v\n%s", res, p.tree(t))
	}
	if _, err := os.Stat(filepath.Join(p.ws, ".berth/skills/one/scripts")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder stays: %v", err)
	}
}

// C159: a skill's name is no way out, nor is a link that lies where its files go.
func TestSyncStaysInside(t *testing.T) {
	p := newPlace(t)
	p.sync(t, skills.Policy{})
	if _, err := os.Lstat("/tmp/pwnskill"); err == nil {
		t.Fatal("/tmp/pwnskill was made")
	}
	write(t, p.ws, "precious/SKILL.md", "precious", 0o644)
	for link, target := range map[string]string{"two": "../../precious", "one/SKILL.md": "../../../precious/SKILL.md"} {
		at := filepath.Join(p.ws, ".berth/skills", link)
		if err := errors.Join(os.RemoveAll(at), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
	}
	p.sync(t, skills.Policy{})
	if data, err := os.ReadFile(filepath.Join(p.ws, "precious/SKILL.md")); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(p.ws, ".berth/skills/two/SKILL.md")); err != nil || string(data) != skill("two") {
		t.Errorf("%q, %v", data, err)
	}
	// A record that was tampered with names nothing outside.
	write(t, p.ws, ".berth/skills/.manifest.json", `{"version":1,"files":{"../../precious/SKILL.md":"x","/etc/passwd":"y"}}`, 0o644)
	res := p.sync(t, skills.Policy{Deny: []string{"*"}})
	if data, err := os.ReadFile(filepath.Join(p.ws, "precious/SKILL.md")); err != nil || string(data) != "precious" || len(res.Removed) != 0 {
		t.Errorf("%q, %v, %+v", data, err, res)
	}
	bad := p.list(t, skills.Policy{})
	for i := range bad.Verdicts {
		for j := range bad.Verdicts[i].Resources {
			bad.Verdicts[i].Resources[j].Path = "../../x"
		}
	}
	if _, err := mirror.Sync(t.Context(), bad, p.from, p.to, mirror.Options{}); !errors.Is(err, fsbridge.ErrOutsideRoot) {
		t.Error(err)
	}
}

func TestSyncRefuses(t *testing.T) {
	p := newPlace(t)
	write(t, p.ws, "mine/a", "x", 0o644)
	for dir, want := range map[string]error{"mine": mirror.ErrForeign, "/etc/x": fsbridge.ErrOutsideRoot, "../x": fsbridge.ErrOutsideRoot} {
		if _, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{}), p.from, p.to, mirror.Options{Dir: dir}); !errors.Is(err, want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	write(t, p.ws, "mine/.manifest.json", "{}", 0o644)
	if _, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{}), p.from, p.to, mirror.Options{Dir: "mine"}); !errors.Is(err, mirror.ErrForeign) {
		t.Error(err)
	}
	if _, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{}), p.from, p.to, mirror.Options{MaxBytes: 10}); !errors.Is(err, fsbridge.ErrTooLarge) {
		t.Error(err)
	}
	changed := p.list(t, skills.Policy{})
	write(t, p.src, "one/scripts/run.sh", "other", 0o755)
	if _, err := mirror.Sync(t.Context(), changed, p.from, p.to, mirror.Options{}); !errors.Is(err, fsbridge.ErrConflict) {
		t.Error(err)
	}
	plain := struct{ fsbridge.Bridge }{p.to}
	if _, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{}), p.from, plain, mirror.Options{}); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Error(err)
	}
}

// breaking fails each change from the nth on.
type breaking struct {
	*local.Bridge
	left *atomic.Int64
}

func (b breaking) cut() error {
	if b.left.Add(-1) < 0 {
		return &fsbridge.PathError{Op: "write", Path: "x", Err: fsbridge.ErrOutcomeUnknown}
	}
	return nil
}

func (b breaking) WriteFile(ctx context.Context, p string, data []byte) error {
	if err := b.cut(); err != nil {
		return err
	}
	return b.Bridge.WriteFile(ctx, p, data)
}

func (b breaking) Remove(ctx context.Context, p string, o fsbridge.RemoveOptions) error {
	if err := b.cut(); err != nil {
		return err
	}
	return b.Bridge.Remove(ctx, p, o)
}

func (b breaking) Declares(c fsbridge.Capability) bool { return c != fsbridge.CapWriteStream }

// A connection that is cut anywhere leaves nothing that a second call does not put right.
func TestSyncCut(t *testing.T) {
	for n := range int64(12) {
		p := newPlace(t)
		p.sync(t, skills.Policy{})
		whole := p.to
		p.to = breaking{Bridge: open(t, p.ws, fsbridge.MountWorkspace), left: &atomic.Int64{}}
		p.to.(breaking).left.Store(n)
		write(t, p.src, "three/SKILL.md", skill("three"), 0o644)
		_, err := mirror.Sync(t.Context(), p.list(t, skills.Policy{Deny: []string{"one"}}), p.from, p.to, mirror.Options{Parallel: 1})
		if err != nil && !errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			t.Errorf("cut at %d: %v", n, err)
		}
		p.to = whole
		p.sync(t, skills.Policy{Deny: []string{"one", "three"}})
		if got := p.tree(t); got != ".berth/skills/two/SKILL.md 444" {
			t.Errorf("cut at %d leaves\n%s", n, got)
		}
	}
}

func TestBinds(t *testing.T) {
	p := newPlace(t)
	l := p.list(t, skills.Policy{})
	got, err := mirror.Binds(l, "/skills")
	want := []sandbox.Bind{
		{Source: filepath.Join(p.src, "one"), Target: "/skills/one", ReadOnly: true},
		{Source: filepath.Join(p.src, "two"), Target: "/skills/two", ReadOnly: true},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := mirror.Binds(l, "skills"); !errors.Is(err, fsbridge.ErrInvalid) {
		t.Error(err)
	}
	for i := range l.Verdicts {
		l.Verdicts[i].RealFile = ""
	}
	if _, err := mirror.Binds(l, "/skills"); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Error(err)
	}
	for i := range l.Verdicts {
		l.Verdicts[i].Kind = skills.KindWorkspace
	}
	if got, err := mirror.Binds(l, "/skills"); err != nil || len(got) != 0 {
		t.Errorf("the workspace's own: %v, %v", got, err)
	}
}
