package bench

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestTextsNameTheirPeers: what is said of a backend names the programs it is compared with, and no
// others.
func TestTextsNameTheirPeers(t *testing.T) {
	for backend, foreign := range map[string][]string{
		"bubblewrap": {"podman"}, docker: {"podman", "bwrap"}, podman: {"docker", "bwrap"}, sshBackend: {"docker", "podman", "bwrap"},
	} {
		for _, m := range measuresOf(backend) {
			for _, word := range foreign {
				if text := m.how(kindOf(backend)); strings.Contains(text, word) {
					t.Errorf("%s, %s: the text speaks of %s: %s", backend, m.name, word, text)
				}
			}
		}
	}
}

func TestOnlyContainersHaveTheirBudgets(t *testing.T) {
	if got := kindOf("bubblewrap").faster(400); got != (Budget{}) {
		t.Errorf("bubblewrap has the budget %+v", got)
	}
	for _, backend := range []string{docker, podman} {
		if got := kindOf(backend).faster(400); got != (Budget{MinRatio: 400}) {
			t.Errorf("%s has the budget %+v", backend, got)
		}
	}
}

func TestNothingToMeasure(t *testing.T) {
	missing := &Bench{Name: podman, Missing: noEngine}
	for name, only := range map[string]*regexp.Regexp{"no backend": nil, "no measure": regexp.MustCompile("nonsense")} {
		if r, err := Run(t.Context(), only, time.Now(), missing); err == nil {
			t.Errorf("%s: a report %+v and no error", name, r)
		}
	}
}

func TestWrapped(t *testing.T) {
	text := strings.Repeat("größer ", 100)
	got := wrapped(text)
	if strings.Join(strings.Fields(text), " ") != strings.ReplaceAll(got, "\n", " ") {
		t.Errorf("the words changed: %s", got)
	}
	for i, line := range strings.Split(got, "\n") {
		if n := utf8.RuneCountInString(line); n > 130 || n < 120 && i < 5 {
			t.Errorf("line %d has %d characters", i+1, n)
		}
	}
}
