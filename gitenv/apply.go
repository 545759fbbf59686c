package gitenv

import (
	"errors"
	"slices"
)

// A Filter is a runtime's own environment policy. It receives a list of NAME=value entries that is its to change and
// returns what the child may have. It runs last and wins.
type Filter func(env []string) []string

// KeepNames returns a Filter that keeps exactly the variables whose name keep accepts. Entries that are not variables
// are dropped.
func KeepNames(keep func(name string) bool) Filter {
	return func(env []string) []string {
		return slices.DeleteFunc(env, func(entry string) bool {
			name, _, ok := cutEntry(entry)
			return !ok || !keep(name)
		})
	}
}

// A Child describes the environment a process would get if there were no fragment.
type Child struct {
	// Placement says where the process runs and who starts it. Required.
	Placement Placement
	// Inherited is what the process would inherit, before any filter. An environment that has been filtered already
	// cannot tell "removed" from "never set": pass the filter in Filter instead.
	Inherited []string
	// Explicit is what the native side sets for this process. Each entry replaces the inherited ones of that name, an
	// empty GIT_CONFIG_PARAMETERS included. Of several entries with one name the last counts.
	Explicit []string
	// Filter is applied at the very end; nil keeps everything.
	Filter Filter
}

// Apply returns the environment of a child as a new list of NAME=value entries, never nil, so that os/exec does not
// take it for "inherit everything".
//
// Explicit entries are laid over the inherited ones; then, for a child at [LocalHost] and a fragment that is neither
// nil nor empty, the fragment is appended to [ParametersVar] as [Compose] says; then the filter runs. Everything else
// is exactly as it was, the order included: in particular the COUNT family is not touched, and without a fragment
// nothing about git changes, not even a value that git refuses. Keeps GIT-02, GIT-03, GIT-04, GIT-05, GIT-06, GIT-07,
// GIT-08, GIT-09 and GIT-12.
//
// The error matches [ErrPlacement], or is a *[FragmentError] or a *[BaseError]. A broken base is no error if the filter
// removes the variable, since the child will not see it. With an error there is no environment: do not start the child.
func Apply(c Child, fragment *string) ([]string, error) {
	if err := c.Placement.Validate(); err != nil {
		return nil, err
	}
	env := overlay(c.Inherited, c.Explicit)
	if fragment == nil || *fragment == "" || !c.Placement.ReceivesFragment() {
		return c.filter(env), nil
	}
	value, err := Compose(lookupPtr(c.Inherited), lookupPtr(c.Explicit), *fragment)
	if base := (*BaseError)(nil); errors.As(err, &base) {
		env = c.filter(env)
		if lookupPtr(env) != nil {
			return nil, err
		}
		return env, nil
	}
	if err != nil {
		return nil, err
	}
	return c.filter(set(env, ParametersVar, value)), nil
}

// filter applies the child's filter to a list it may change.
func (c Child) filter(env []string) []string {
	if c.Filter != nil {
		env = c.Filter(env)
	}
	if env == nil {
		env = []string{}
	}
	return env
}

// lookupPtr returns a copy of the value of ParametersVar, or nil if it is not set.
func lookupPtr(env []string) *string {
	if v, ok := LookupIn(env)(ParametersVar); ok {
		return &v
	}
	return nil
}

// overlay returns a new list: the base entries whose name over does not set, then those of over.
func overlay(base, over []string) []string {
	names := make(map[string]bool, len(over))
	for _, entry := range over {
		if name, _, ok := cutEntry(entry); ok {
			names[name] = true
		}
	}
	env := make([]string, 0, len(base)+len(over)+1)
	for _, entry := range base {
		if name, _, ok := cutEntry(entry); !ok || !names[name] {
			env = append(env, entry)
		}
	}
	return append(env, over...)
}

// set gives a variable a value where its last entry stands, or at the end, and drops its other entries, so that a
// child that looks at the first one sees the same.
func set(env []string, name, value string) []string {
	isName := func(entry string) bool {
		n, _, ok := cutEntry(entry)
		return ok && n == name
	}
	last := -1
	for i, entry := range env {
		if isName(entry) {
			last = i
		}
	}
	if last < 0 {
		return append(env, name+"="+value)
	}
	env[last] = name + "=" + value
	kept := env[:0]
	for i, entry := range env {
		if i == last || !isName(entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}
