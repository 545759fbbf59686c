package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	build := func(module string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: module}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, tc := range []struct {
		name  string
		stamp string
		info  *debug.BuildInfo
		want  string
	}{
		{"stamp wins over everything", "v1.2.3", build("v9.9.9", "vcs.revision", commit), "v1.2.3"},
		{"stamp is trimmed", " v1.2.3\n", nil, "v1.2.3"},
		{"stamp cannot smuggle in a second word", "v1.2.3 or so\nelse", nil, "v1.2.3-or-so-else"},
		{"blank stamp counts as none", " \t", build("v9.9.9"), "v9.9.9"},
		{"module version", "", build("v0.4.0"), "v0.4.0"},
		{"checkout", "", build("(devel)", "vcs.revision", commit, "vcs.modified", "false"), "devel+0123456789ab"},
		{"modified checkout", "", build("(devel)", "vcs.revision", commit, "vcs.modified", "true"), "devel+0123456789ab.dirty"},
		{"short revision", "", build("", "vcs.revision", "42"), "devel+42"},
		{"no version control facts", "", build("(devel)"), "devel"},
		{"no build facts at all", "", nil, "devel"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := describe(tc.stamp, tc.info); got != tc.want {
				t.Errorf("describe(%q, ...) = %q, want %q", tc.stamp, got, tc.want)
			}
		})
	}
}

func TestVersionIsOneWord(t *testing.T) {
	v := Version()
	if v == "" || strings.ContainsAny(v, " \t\r\n") {
		t.Errorf("Version() = %q, want one non-empty word", v)
	}
}

// TestStamp builds a program with the documented linker flag, so that a renamed variable, which
// the linker ignores without a word, fails here and not in a release.
func TestStamp(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// A main package outside the module cannot import an internal one, so it is laid over the
	// module's root for this one build.
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	program := "package main\n\nimport \"" + modulePath + "/internal/version\"\n\nfunc main() { print(version.Version()) }\n"
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	mapping := `{"Replace": {"` + filepath.Join(root, "internal/version/stamptest/main.go") + `": "` + source + `"}}`
	if err := os.WriteFile(overlay, []byte(mapping), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "stamptest")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary,
		"-ldflags", "-X "+modulePath+"/internal/version.stamped=v7.8.9-test", "./internal/version/stamptest")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out); got != "v7.8.9-test" {
		t.Errorf("stamped program reports %q, want %q", got, "v7.8.9-test")
	}
}

const modulePath = "github.com/workberth/workberth"
