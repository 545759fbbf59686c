package mediastore_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/attachments/mediastore"
)

// C125 C127: one flat safe name for each.
func TestCleanName(t *testing.T) {
	long := strings.Repeat("x", 400)
	for name, want := range map[string]string{
		"report.pdf": "report.pdf", "../../evil": "evil", "/etc/passwd": "passwd", `..\..\w.txt`: "w.txt", "a/b/c.txt": "c.txt",
		`C:\x\y`: "y", ".": "file", "..": "file", "": "file", "/": "file", ".bashrc": "bashrc", "CON": "file-CON", "con.txt": "file-con.txt",
		"LPT1": "file-LPT1", "COM10": "COM10", "COMET": "COMET", "a\x00b": "ab", long: long[:128], long + ".tar.gz": long[:125] + ".gz",
		"memo\u202egpj.sh": "memogpj.sh", "a\u200bb\ufeffc": "abc", "\x1b[31mred\a": "_31mred", "x\ny": "xy", "-rf": "rf", "--help": "help",
		" lead": "lead", "trail ": "trail", "a  b": "a b", "a\u00a0b\u3000c": "a b c", "dots...": "dots", "$(rm -rf ~)": "_(rm -rf _)",
		"`id`;'\"<>|&*?": "_id__________", "bad\xff\xfe.txt": "bad__.txt", "日本語.txt": "日本語.txt", "हिन्दी.pdf": "हिन्दी.pdf",
		strings.Repeat("日", 100) + ".txt": strings.Repeat("日", 41) + ".txt", "a." + long: ("a." + long)[:128], "e\u0301.txt": "e\u0301.txt",
	} {
		if got := mediastore.CleanName(name); got != want {
			t.Errorf("CleanName(%q) = %q, want %q", name, got, want)
		}
	}
}

var clean = regexp.MustCompile(`^[\p{L}\p{M}\p{N} ._()\-+,=@]+$`)

func checkClean(t rapid.TB, name string) {
	got := mediastore.CleanName(name)
	switch {
	case !clean.MatchString(got):
		t.Fatalf("CleanName(%q) = %q has other characters", name, got)
	case len(got) > mediastore.MaxName || !utf8.ValidString(got):
		t.Fatalf("CleanName(%q) = %q has %d bytes", name, got, len(got))
	case strings.ContainsAny(got[:1], ".- ") || strings.ContainsAny(got[len(got)-1:], ". "):
		t.Fatalf("CleanName(%q) = %q has bad ends", name, got)
	case path.Base(got) != got || got == "." || got == "..":
		t.Fatalf("CleanName(%q) = %q is no flat name", name, got)
	case mediastore.CleanName(got) != got:
		t.Fatalf("CleanName(%q) = %q, and again %q", name, got, mediastore.CleanName(got))
	}
}

func TestCleanNameProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "bytes") {
			checkClean(t, string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "name")))
			return
		}
		checkClean(t, rapid.StringN(0, 300, 600).Draw(t, "name"))
	})
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"", "..", "a/b", "CON", "\u202e", "\xff", strings.Repeat("é", 90) + ".pdf", "x. .", "nul.txt.", strings.Repeat("a", 127) + ". b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) { checkClean(t, name) })
}
