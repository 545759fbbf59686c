package skills

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Requirements are what a skill needs of the machine it is used on.
type Requirements struct {
	// Platforms are the operating systems it works on, as Go spells them; none means any.
	Platforms []string `json:"platforms,omitempty"`
	// Binaries are programs that must all be on PATH; of AnyBinary, one must.
	Binaries  []string `json:"binaries,omitempty"`
	AnyBinary []string `json:"anyBinary,omitempty"`
	// Env are variables that must be set and not empty.
	Env []string `json:"env,omitempty"`
}

const (
	// maxNeeds bounds each list of a skill's requirements, maxAsked what all skills of a machine
	// may ask of it, each in names.
	maxNeeds = 64
	maxAsked = 20_000
)

// vendors are the keys of metadata below which requirements stand, in the order they are looked
// for: ours, and those of programs whose skills are common.
func vendors() []string { return []string{"berth", "openclaw", "clawdbot", "moltbot", "clawdis"} }

var (
	binaryName   = regexp.MustCompile(`^[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,127}$`)
	platformName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`)
	envName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// requirements reads the requirements from the metadata. They stand below a vendor's key:
//
//	metadata:
//	  berth:
//	    os: [linux, darwin]
//	    requires: {bins: [jq], anyBins: [rg, grep], env: [TOKEN]}
func (s *Skill) requirements(meta map[string]any, line int) Requirements {
	for _, v := range vendors() {
		m := mapping(meta[v])
		if m == nil {
			continue
		}
		var r Requirements
		bad := func(key, what string) {
			s.fault(SeverityError, line, RuleRequirements, fmt.Sprintf("metadata.%s.%s: %s", v, key, what), "correct it; a requirement that is not understood is not taken for met")
		}
		for _, p := range words(m["os"], platformName.MatchString, func(what string) { bad("os", what) }) {
			r.Platforms = append(r.Platforms, platform(p))
		}
		req := mapping(m["requires"])
		if req == nil && m["requires"] != nil {
			bad("requires", "is no mapping")
		}
		for _, part := range []struct {
			key   string
			to    *[]string
			valid *regexp.Regexp
		}{{"bins", &r.Binaries, binaryName}, {"anyBins", &r.AnyBinary, binaryName}, {"env", &r.Env, envName}} {
			*part.to = words(req[part.key], part.valid.MatchString, func(what string) { bad("requires."+part.key, what) })
		}
		return r
	}
	return Requirements{}
}

// mapping takes a mapping, also one written as JSON in a text.
func mapping(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case string:
		var m map[string]any
		if strings.HasPrefix(strings.TrimSpace(v), "{") && json.Unmarshal([]byte(v), &m) == nil {
			return m
		}
	}
	return nil
}

// words takes a text or a list of texts.
func words(v any, valid func(string) bool, bad func(what string)) []string {
	var list []any
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		for _, w := range strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ',' }) {
			list = append(list, w)
		}
	case []any:
		list = v
	default:
		bad("is neither a text nor a list")
		return nil
	}
	if len(list) > maxNeeds {
		bad(fmt.Sprintf("has %d names, at most %d are possible", len(list), maxNeeds))
		return nil
	}
	var out []string
	for _, x := range list {
		w, ok := x.(string)
		if !ok || !valid(w) {
			bad(fmt.Sprintf("%q cannot be such a name", fmt.Sprint(x)))
			continue
		}
		out = append(out, w)
	}
	return out
}

// platform spells an operating system as Go does.
func platform(p string) string {
	switch p = strings.ToLower(strings.TrimSpace(p)); p {
	case "macos", "mac", "osx":
		return "darwin"
	case "win32", "win", "win64":
		return "windows"
	}
	return p
}

// needs collects what all skills ask of a machine, sorted. What is beyond maxAsked is not asked,
// and so not met.
func needs(list []Skill, also Request) Request {
	ask := Request{Binaries: slices.Clone(also.Binaries), Env: slices.Clone(also.Env)}
	for _, s := range list {
		if s.Rejected() {
			continue
		}
		ask.Binaries = append(append(ask.Binaries, s.Requires.Binaries...), s.Requires.AnyBinary...)
		ask.Env = append(ask.Env, s.Requires.Env...)
	}
	for _, l := range []*[]string{&ask.Binaries, &ask.Env} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
		*l = (*l)[:min(len(*l), maxAsked)]
	}
	return ask
}

// Missing says what a machine lacks for the requirements: nothing when they are met. A fact that
// is not known is not taken for met. Keeps SKL-04.
func (r Requirements) Missing(f Facts) []string {
	var out []string
	if len(r.Platforms) > 0 && !slices.Contains(r.Platforms, f.Platform) {
		have := f.Platform
		if have == "" {
			have = "an unknown system"
		}
		out = append(out, fmt.Sprintf("platform %s, its machine has %s", strings.Join(r.Platforms, " or "), have))
	}
	for _, b := range r.Binaries {
		if !f.Binaries[b] {
			out = append(out, "binary "+b)
		}
	}
	if len(r.AnyBinary) > 0 && !slices.ContainsFunc(r.AnyBinary, func(b string) bool { return f.Binaries[b] }) {
		out = append(out, "one of the binaries "+strings.Join(r.AnyBinary, ", "))
	}
	for _, e := range r.Env {
		if !f.Env[e] {
			out = append(out, "environment variable "+e)
		}
	}
	return out
}
