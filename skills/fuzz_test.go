package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/workberth/workberth/skills"
)

// FuzzFrontmatter: whatever a SKILL.md holds, it is listed once, either usable (a valid name and a
// description without carriage returns) or rejected with a fault that has rule and text.
func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{
		good("x"), "", "---\n---\n", "---\nname: a: b\ndescription: 'x\n---\n", "\xef\xbb\xbf---\r\nname: x\r\ndescription: |\r\n  a\r\n---\r\n",
		"---\ndescription: &a [*a]\n---\n", "---\nmetadata: {openclaw: {requires: {bins: [a, 1, ..]}}}\n---\n", "<!--\n-->---\nname: ../..\n---",
	} {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	write(f, dir, map[string]string{"skills/x/SKILL.md": ""})
	b := bridge(f, dir)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "skills/x/SKILL.md"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := skills.Discover(t.Context(), b, workspace(), nil, skills.Options{Parallel: 1, NoHashes: true})
		if err != nil || len(d.Skills) != 1 {
			t.Fatalf("%d skills, %v", len(d.Skills), err)
		}
		s := d.Skills[0]
		for _, fault := range s.Faults {
			if fault.Rule == "" || fault.Text == "" || fault.Line < 0 || fault.Line > 1+strings.Count(string(data), "\n")+strings.Count(string(data), "\r") {
				t.Errorf("fault %+v", fault)
			}
		}
		if s.Rejected() {
			return
		}
		if !skills.ValidName(s.Name) || s.Description == "" || strings.ContainsRune(s.Description, '\r') || !utf8.ValidString(s.Description) {
			t.Errorf("loaded %q %q", s.Name, s.Description)
		}
		skills.Body(data)
	})
}
