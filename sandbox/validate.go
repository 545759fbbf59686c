package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Finding is a setting that breaks a rule.
type Finding struct {
	// Field is the configuration field, as AllowDangerous names it.
	Field string `json:"field"`
	// What was asked, printable. Never the value of an environment variable.
	What string `json:"what"`
	// Rule that it breaks, one line.
	Rule string `json:"rule"`
	// Remedy is what to do next, one line.
	Remedy string `json:"remedy"`
	// Dangerous settings can be permitted by name; others make no sense at all.
	Dangerous bool `json:"dangerous"`
	// Allowed is true when AllowDangerous names the field.
	Allowed bool `json:"allowed"`
	// Err is the cause where there is one.
	Err error `json:"-"`
}

// Problem is the finding as an error that matches ErrRefused.
func (f Finding) Problem() *Problem {
	err := ErrRefused
	if f.Err != nil {
		err = wrapRefused(f.Err)
	}
	return &Problem{Field: f.Field, What: f.What, Rule: f.Rule, Remedy: f.Remedy, Err: err}
}

// dangerousFields are the words AllowDangerous may hold.
func dangerousFields() []string {
	return []string{"binds", "capAdd", "network", "pidMode", "privileged", "seccompProfile", "tmpfs", "workspace"}
}

// Validate looks at a spec as it is, without defaults, before anything is created. It
// returns every finding. The error is nil when all of them are dangerous settings
// that AllowDangerous names; otherwise it holds one *[Problem] per finding that is
// refused, each matching ErrRefused: [errors.As] finds the first.
//
// Every spelling counts: letter case, white space, "..", links, paths that do not
// exist yet. A link made between this call and the creation is the caller's own
// doing: sources belong to the user, not to the sandbox.
//
// Fields that belong to one backend (Image, User) are checked for form only.
func Validate(spec Spec, host HostFacts) ([]Finding, error) {
	v := &validator{spec: spec, host: host, protected: host.protectedPaths()}
	v.scope()
	v.workspace()
	v.namespaces()
	v.seccomp()
	v.tmpfs()
	v.binds()
	v.targets()
	v.limits()
	v.environment()
	v.texts()
	v.allowed()

	var problems []error
	for i := range v.findings {
		f := &v.findings[i]
		f.Allowed = f.Dangerous && slices.Contains(spec.Config.AllowDangerous, f.Field)
		if !f.Allowed {
			problems = append(problems, f.Problem())
		}
	}
	switch len(problems) {
	case 0:
		return v.findings, nil
	case 1:
		return v.findings, problems[0]
	}
	return v.findings, errors.Join(problems...)
}

// Resolved is a spec that may be made: complete, checked, named.
type Resolved struct {
	// Spec has its defaults applied; workspace, bind sources and profile are
	// without links.
	Spec       Spec
	ID         ID
	ConfigHash string
	// Findings are the dangerous settings that were permitted.
	Findings []Finding
}

// Resolve is what every backend does first in Ensure: it applies the defaults,
// validates, logs each dangerous setting that is permitted, and derives the
// identity. Nothing is created. Errors are those of [Validate] and [Identity].
func Resolve(backend string, spec Spec, host HostFacts, log *slog.Logger) (Resolved, error) {
	spec.Config = ApplyDefaults(spec.Config)
	findings, err := Validate(spec, host)
	if err != nil {
		return Resolved{}, err
	}
	id, hash, err := Identity(backend, spec, host)
	if err != nil {
		return Resolved{}, err
	}
	for _, f := range findings {
		discard(log).Warn("dangerous setting permitted by allowDangerous",
			"sandbox", id, "field", f.Field, "setting", f.What, "rule", f.Rule)
	}
	spec.Workspace = host.resolve(spec.Workspace)
	for i, b := range spec.Config.Binds {
		spec.Config.Binds[i].Source = host.resolve(b.Source)
	}
	if strings.HasPrefix(spec.Config.SeccompProfile, "/") {
		spec.Config.SeccompProfile = host.resolve(spec.Config.SeccompProfile)
	}
	return Resolved{Spec: spec, ID: id, ConfigHash: hash, Findings: findings}, nil
}

// validator collects findings about one spec.
type validator struct {
	spec      Spec
	host      HostFacts
	protected []protectedPath
	findings  []Finding
}

// wrong adds a finding that nothing can permit.
func (v *validator) wrong(field, what, rule, remedy string) {
	v.findings = append(v.findings, Finding{Field: field, What: what, Rule: rule, Remedy: remedy})
}

// dangerous adds a finding that AllowDangerous can permit.
func (v *validator) dangerous(field, what, rule, instead string) {
	v.findings = append(v.findings, Finding{
		Field: field, What: what, Rule: rule, Dangerous: true,
		Remedy: fmt.Sprintf("%s, or permit it explicitly with allowDangerous: [%s]", instead, field),
	})
}

// problem adds an error made elsewhere.
func (v *validator) problem(err error) {
	var p *Problem
	if errors.As(err, &p) {
		v.findings = append(v.findings, Finding{Field: p.Field, What: p.What, Rule: p.Rule, Remedy: p.Remedy, Err: p.Err})
	}
}

// allowed refuses a word in AllowDangerous that permits nothing: it is a slip.
func (v *validator) allowed() {
	for _, field := range v.spec.Config.AllowDangerous {
		if !slices.Contains(dangerousFields(), field) {
			v.wrong("allowDangerous", fmt.Sprintf("field %q", field), "no dangerous setting has that name",
				"name one of "+strings.Join(dangerousFields(), ", "))
		}
	}
}

// refused makes a Problem that matches ErrRefused.
func refused(field, what, rule, remedy string) *Problem {
	return &Problem{Field: field, What: what, Rule: rule, Remedy: remedy, Err: ErrRefused}
}

// wrapRefused makes a cause match ErrRefused as well.
func wrapRefused(cause error) error {
	if errors.Is(cause, ErrRefused) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrRefused, cause)
}
