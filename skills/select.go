package skills

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// State is what became of a skill.
type State string

// The states.
const (
	// StateLoaded: the agent may use it.
	StateLoaded State = "loaded"
	// StateShadowed: another skill of the name is used.
	StateShadowed State = "shadowed"
	// StateDisabled: the configuration leaves it out.
	StateDisabled State = "disabled"
	// StateMissing: its machine lacks what it needs.
	StateMissing State = "missing"
	// StateRejected: it cannot be used as it is; see its faults.
	StateRejected State = "rejected"
)

// Verdict is a skill with what became of it.
type Verdict struct {
	Skill
	State State `json:"state"`
	// By is the file that shadows it, or the setting that disables it.
	By string `json:"by,omitempty"`
	// Missing is what its machine lacks.
	Missing []string `json:"missing,omitempty"`
	// Notes tell of others of the same name: which it shadows, or which would have won.
	Notes []string `json:"notes,omitempty"`
}

// Listing is every skill found, with its verdict, by name and then precedence; those without a
// name are last.
type Listing struct {
	Verdicts []Verdict `json:"skills"`
	Notices  []Fault   `json:"notices,omitempty"`
}

// Policy is what the configuration says about skills. The zero value lets all in.
type Policy struct {
	// Allow are patterns of names ("*", "?", "[...]"); where there are some, only matching skills
	// are used. Deny are patterns of names that are not used; it wins.
	Allow []string
	Deny  []string
	// Kinds, when not nil, are the kinds that are used.
	Kinds []Kind
	// Filter, when not nil, is asked last: an answer that is not empty is the reason to disable.
	Filter func(Skill) string
}

// Check refuses malformed patterns.
func (p Policy) Check() error {
	for _, pattern := range slices.Concat(p.Allow, p.Deny) {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("skills: %q is no pattern of names: %w", pattern, fsbridge.ErrInvalid)
		}
	}
	return nil
}

// disabled says which setting keeps a skill out, "" for none.
func (p Policy) disabled(s Skill) string {
	for _, pattern := range p.Deny {
		if ok, _ := path.Match(pattern, s.Name); ok { // checked before
			return "skills.deny: " + pattern
		}
	}
	if p.Kinds != nil && !slices.Contains(p.Kinds, s.Kind) {
		return "skills.kinds has no " + string(s.Kind)
	}
	if len(p.Allow) > 0 && !slices.ContainsFunc(p.Allow, func(pattern string) bool { ok, _ := path.Match(pattern, s.Name); return ok }) {
		return "skills.allow has no pattern for it"
	}
	if p.Filter != nil {
		return p.Filter(s)
	}
	return ""
}

// Select decides about everything that was found: the policy first, then the requirements, each
// judged by the facts of its own discovery, then precedence. Discoveries of one kind are given
// strongest first. The answer depends on the content of the discoveries and their order alone.
// Keeps SKL-03, SKL-04, SKL-05.
func Select(p Policy, found ...Discovery) (Listing, error) {
	if err := p.Check(); err != nil {
		return Listing{}, err
	}
	var out Listing
	for _, d := range found {
		out.Notices = append(out.Notices, d.Notices...)
		for _, s := range d.Skills {
			out.Verdicts = append(out.Verdicts, p.judge(s, d.Facts))
		}
	}
	slices.SortStableFunc(out.Verdicts, func(a, b Verdict) int {
		if (a.Name == "") != (b.Name == "") {
			return strings.Compare(b.Name, a.Name)
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.Kind.rank(), a.Kind.rank()))
	})
	for from := 0; from < len(out.Verdicts); {
		to := from + 1
		for to < len(out.Verdicts) && out.Verdicts[to].Name == out.Verdicts[from].Name {
			to++
		}
		if out.Verdicts[from].Name != "" {
			contest(out.Verdicts[from:to])
		}
		from = to
	}
	return out, nil
}

// judge decides about one skill alone.
func (p Policy) judge(s Skill, f Facts) Verdict {
	v := Verdict{Skill: s, State: StateLoaded}
	if s.Rejected() {
		v.State = StateRejected
		return v
	}
	if v.By = p.disabled(s); v.By != "" {
		v.State = StateDisabled
		return v
	}
	if v.Missing = s.Requires.Missing(f); len(v.Missing) > 0 {
		v.State = StateMissing
	}
	return v
}

// contest decides between the skills of one name, strongest first.
func contest(list []Verdict) {
	winner := slices.IndexFunc(list, func(v Verdict) bool { return v.State == StateLoaded })
	if winner < 0 {
		return
	}
	w := &list[winner]
	for i := range list {
		v := &list[i]
		switch {
		case i < winner && v.State != StateDisabled:
			v.Notes = append(v.Notes, "in its place: "+fsbridge.DisplayPath(w.File))
			w.Notes = append(w.Notes, fmt.Sprintf("would be shadowed by %s, which is %s", fsbridge.DisplayPath(v.File), v.State))
		case i > winner && v.State == StateLoaded:
			v.State, v.By = StateShadowed, w.File
			w.Notes = append(w.Notes, "shadows "+fsbridge.DisplayPath(v.File))
		}
	}
}

// Loaded are the skills that may be used.
func (l Listing) Loaded() []Verdict {
	var out []Verdict
	for _, v := range l.Verdicts {
		if v.State == StateLoaded {
			out = append(out, v)
		}
	}
	return out
}
