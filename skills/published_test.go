package skills_test

import (
	"strings"
	"testing"

	"github.com/workberth/workberth/skills"
)

// C147 C151: files as they were published (testdata/published/NOTICE says by whom). One has an
// unquoted colon, for which YAML alone drops it, one has no frontmatter, one is as it should be.
func TestPublished(t *testing.T) {
	_, l := found(t, bridge(t, "testdata/published"), skills.Root{Path: ".", Kind: skills.KindInstalled, Needed: true})
	if len(l.Verdicts) != 3 {
		t.Fatalf("%d listed", len(l.Verdicts))
	}
	v := at(t, l, "laravel-verification/SKILL.md")
	if v.State != skills.StateLoaded || !strings.HasPrefix(v.Description, "Verification loop for Laravel projects: env checks,") || rules(v.Skill) != "quoting" || v.Faults[0].Line != 3 {
		t.Errorf("%+v", v)
	}
	v = at(t, l, "verification-loop/SKILL.md")
	if v.State != skills.StateRejected || rules(v.Skill) != "frontmatter" || v.Faults[0].Line != 1 {
		t.Errorf("%+v", v)
	}
	v = at(t, l, "my-first-skill/SKILL.md")
	if v.State != skills.StateLoaded || len(v.Faults) != 0 {
		t.Errorf("%+v", v)
	}
}
