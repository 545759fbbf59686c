package archtest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// forbidden is a pattern that no file may contain.
type forbidden struct {
	pattern *regexp.Regexp
	because string
}

// forbiddenWords keeps the repository standing alone: it works wherever it is cloned and does not
// depend on one package source.
func forbiddenWords() []forbidden {
	return []forbidden{
		{regexp.MustCompile(`\.\./shared\b`), "a path outside the repository"},
		{regexp.MustCompile(`(^|[^\w.~-])/work/`), "a path of one machine"},
		{regexp.MustCompile(`(^|[^\w.~-])/(home|Users)/[a-z]+/(go|src|code)/`), "a path of one machine"},
		{regexp.MustCompile(`\b(proxy\.golang\.org|sum\.golang\.org|registry\.npmjs\.org|registry-1\.docker\.io|deb\.debian\.org|snapshot\.debian\.org|pypi\.org)\b`), "a package source, which is the machine's business"},
	}
}

// forbiddenIn returns a problem for every forbidden word.
func forbiddenIn(name string, content []byte, words []forbidden) (problems []string) {
	for i, line := range bytes.Split(content, []byte("\n")) {
		for _, w := range words {
			if found := w.pattern.Find(line); found != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: contains %q: %s", name, i+1, bytes.TrimSpace(found), w.because))
			}
		}
	}
	return problems
}

// TestForbiddenWords reads every text file but this one.
func TestForbiddenWords(t *testing.T) {
	r := openRepo(t)
	words := forbiddenWords()
	for _, name := range r.files {
		content := r.read(t, name)
		if name == "internal/archtest/words_test.go" || !utf8.Valid(content) {
			continue
		}
		report(t, forbiddenIn(name, content, words))
	}
}

func TestForbiddenIn(t *testing.T) {
	for _, tc := range []struct {
		line string
		want bool
	}{
		{"see ../shared/x", true},
		{"see ../sharedlib", false},
		{"cd /work/main", true},
		{`"/work/x"`, true},
		{"/work/", true},
		{"/workspace/x", false},
		{"/srv/work/x", false},
		{"$WORK/work/x", false},
		{"GOPROXY=https://proxy.golang.org", true},
		{"https://go.dev/dl/", false},
		{"/home/ada/src/x", true},
		{"/home/ada/project", false},
	} {
		if got := forbiddenIn("x", []byte(tc.line), forbiddenWords()); (len(got) > 0) != tc.want {
			t.Errorf("forbiddenIn(%q) = %q, want a problem: %v", tc.line, got, tc.want)
		}
	}
	if got := forbiddenIn("x", []byte("a\n/work/\n"), forbiddenWords()); len(got) != 1 || !strings.HasPrefix(got[0], "x:2:") {
		t.Errorf("problem = %q, want line 2", got)
	}
}
