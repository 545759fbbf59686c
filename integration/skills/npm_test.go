package skills

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/skills"
)

// published is a package of npm that ships skills, with what becomes of them.
type published struct {
	spec string // name@version
	// found is the number of SKILL.md files, lenient how many of those load with a warning about
	// quoting: YAML alone would have dropped them, or a part of their description.
	found, lenient int
	// rejected has the files that cannot be used, with the rule.
	rejected map[string]skills.Rule
}

// sets are the packages.
func sets() []published {
	none := skills.RuleFrontmatter
	return []published{
		{spec: "@ant-design/x-skill@2.9.0", found: 12},
		{spec: "@houseofwolvesllc/claude-scrum-skill@2.8.1", found: 10},
		{spec: "@plaited/development-skills@0.8.1", found: 5},
		{spec: "@tloncorp/tlon-skill@0.5.0", found: 1},
		{spec: "@ckelsoe/claude-skill-prompt-architect@2.1.4", found: 1},
		{spec: "agent-reviews@0.7.0", found: 1},
		{spec: "openskills@1.5.0", found: 1},
		{spec: "spring-boot4-skill@1.7.1", found: 1},
		{spec: "ai-labs-claude-skills@2.0.1", found: 27},
		{spec: "@longtq2501/next-spring-skills@1.6.3", found: 2, rejected: map[string]skills.Rule{"skills/SKILL.md": none}},
		{spec: "@pocketagent/paw-skills@1.4.0", found: 1, rejected: map[string]skills.Rule{"skills/pocketagent-wallet/SKILL.md": none}},
		{spec: "ecc-universal@2.0.0", found: 719, lenient: 17, rejected: map[string]skills.Rule{
			"docs/ja-JP/skills/project-guidelines-example/SKILL.md": none, "docs/ja-JP/skills/verification-loop/SKILL.md": none,
			"docs/zh-CN/skills/browser-qa/SKILL.md": none, "docs/zh-TW/skills/project-guidelines-example/SKILL.md": none,
			"docs/zh-TW/skills/verification-loop/SKILL.md": none,
		}},
	}
}

// fetch gets the archives from the registry into dir, by npm itself, and runs nothing of them.
func fetch(t *testing.T, dir string, list []published) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, "npm is not installed")
	}
	args := []string{"pack", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--pack-destination", dir}
	for _, p := range list {
		args = append(args, p.spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	for _, sign := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "network", "proxy"} {
		if strings.Contains(string(out), sign) || ctx.Err() != nil {
			t.Skipf("the registry cannot be reached: %v\n%s", err, out)
		}
	}
	t.Fatalf("npm pack: %v\n%s", err, out)
}

// unpack writes the files of an npm archive below dir. Modes do not count.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, ok := strings.Cut(h.Name, "/") // "package/"
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, 64<<20))
		if err == nil {
			err = root.MkdirAll(filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = root.WriteFile(name, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// archiveName is the file npm pack makes of a spec.
func archiveName(spec string) string {
	at := strings.LastIndex(spec, "@")
	return strings.ReplaceAll(strings.TrimPrefix(spec[:at], "@"), "/", "-") + "-" + spec[at+1:] + ".tgz"
}

// everything is a prober of a machine that has what is asked for.
type everything struct{}

func (everything) Probe(_ context.Context, ask skills.Request) (skills.Facts, error) {
	f := skills.Facts{Platform: "linux", Binaries: map[string]bool{}, Env: map[string]bool{}}
	for _, b := range ask.Binaries {
		f.Binaries[b] = true
	}
	for _, e := range ask.Env {
		f.Env[e] = true
	}
	return f, nil
}

// C147 C151: public skill sets, as they are published: every SKILL.md in them is listed, and what is
// not loaded has a rule.
func TestPublishedSets(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches packages")
	}
	t.Parallel()
	list := sets()
	cache := t.TempDir()
	fetch(t, cache, list)
	for _, p := range list {
		t.Run(p.spec, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, filepath.Join(cache, archiveName(p.spec)), dir)
			p.check(t, dir)
		})
	}
}

func (p published) check(t *testing.T, dir string) {
	b, err := local.New(local.Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace, ReadOnly: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d, err := skills.Discover(t.Context(), b, []skills.Root{{Path: ".", Kind: skills.KindInstalled, Needed: true}}, everything{}, skills.Options{Parallel: 8, NoHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := skills.Select(skills.Policy{}, d)
	if err != nil {
		t.Fatal(err)
	}
	lenient := 0
	for _, v := range l.Verdicts {
		switch v.State {
		case skills.StateLoaded, skills.StateShadowed: // translations have the name of what they translate
		case skills.StateRejected:
			if want, ok := p.rejected[v.File]; !ok || want != v.Faults[0].Rule {
				t.Errorf("%s: %s, %v", v.File, v.State, v.Faults)
			}
		default:
			t.Errorf("%s: %s", v.File, v.State)
		}
		if slices.ContainsFunc(v.Faults, func(f skills.Fault) bool { return f.Rule == skills.RuleQuoting }) {
			lenient++
		}
	}
	if got := fmt.Sprint(len(l.Verdicts), lenient); got != fmt.Sprint(p.found, p.lenient) {
		t.Errorf("%s found and loaded leniently, want %d %d", got, p.found, p.lenient)
	}
}
