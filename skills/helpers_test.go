package skills_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/skills"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// good is a skill without faults.
func good(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + ".\n---\n# " + name + "\n"
}

// write makes files below dir: a name that ends with a slash is a folder, a value that begins with
// "-> " a link.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(target, p)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bridge serves dir as a workspace, and further directories beside it.
func bridge(t testing.TB, dir string, more ...string) *local.Bridge {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	mounts := fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace}}
	for _, m := range more {
		mounts = append(mounts, fsbridge.Mount{Path: m, Kind: fsbridge.MountBind, ReadOnly: true})
	}
	b, err := local.New(local.Options{Mounts: mounts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// workspace are the usual roots.
func workspace() []skills.Root {
	var out []skills.Root
	for _, r := range skills.DefaultWorkspaceRoots() {
		out = append(out, skills.Root{Path: r, Kind: skills.KindWorkspace})
	}
	return out
}

// has is a prober with given facts.
type has skills.Facts

func (h has) Probe(_ context.Context, ask skills.Request) (skills.Facts, error) {
	f := skills.Facts{Platform: h.Platform, Binaries: map[string]bool{}, Env: map[string]bool{}}
	for _, b := range ask.Binaries {
		f.Binaries[b] = h.Binaries[b]
	}
	for _, e := range ask.Env {
		f.Env[e] = h.Env[e]
	}
	return f, nil
}

// found discovers and selects with the zero policy.
func found(t testing.TB, b fsbridge.Bridge, roots ...skills.Root) (skills.Discovery, skills.Listing) {
	t.Helper()
	if len(roots) == 0 {
		roots = workspace()
	}
	d, err := skills.Discover(t.Context(), b, roots, has{Platform: "linux"}, skills.Options{Parallel: 4})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err != nil {
		t.Fatal(err)
	}
	return d, l
}

// at is the verdict on the skill of a file.
func at(t testing.TB, l skills.Listing, file string) skills.Verdict {
	t.Helper()
	for _, v := range l.Verdicts {
		if v.File == file {
			return v
		}
	}
	t.Fatalf("%s is not listed: %+v", file, l)
	return skills.Verdict{}
}

// rules are the rules of a skill's faults.
func rules(s skills.Skill) string {
	var out []string
	for _, f := range s.Faults {
		out = append(out, string(f.Rule))
	}
	return strings.Join(out, " ")
}
