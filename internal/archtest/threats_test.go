package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/threats.md names exists.
func TestThreatsNameRealTests(t *testing.T) {
	root := "../.."
	doc, err := os.ReadFile(filepath.Join(root, "docs", "threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for f := range strings.FieldsSeq(string(files)) {
		data, err := os.ReadFile(filepath.Join(root, f))
		if err == nil {
			code.Write(data)
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(/[a-z-]+)?`").FindAllStringSubmatch(string(doc), -1)
	if len(names) < 40 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, n := range names {
		if !strings.Contains(code.String(), "func "+n[1]+"(") {
			t.Errorf("docs/threats.md names %s, which does not exist", n[1])
		}
		if n[2] == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, "cmd/berth/testdata/script", n[2]+".txtar")); err != nil {
			t.Errorf("docs/threats.md names the script %s: %v", n[2], err)
		}
	}
}
