package seccomp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// jsonRule is one element of "syscalls".
type jsonRule struct {
	Names    []string  `json:"names"`
	Name     string    `json:"name"`
	Action   string    `json:"action"`
	ErrnoRet *uint     `json:"errnoRet"`
	Errno    string    `json:"errno"`
	Args     []jsonArg `json:"args"`
	Comment  string    `json:"comment"`
	Includes jsonWhen  `json:"includes"`
	Excludes jsonWhen  `json:"excludes"`
}

type jsonArg struct {
	Index    *uint  `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

type jsonWhen struct {
	Caps      []string `json:"caps"`
	Arches    []string `json:"arches"`
	MinKernel string   `json:"minKernel"`
}

// parseRule reads one rule that begins on a line.
func parseRule(raw json.RawMessage, line int) ([]Rule, error) {
	var j jsonRule
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return nil, at(line, "%s", plain(err))
	}
	names := j.Names
	switch {
	case j.Name != "" && len(names) > 0:
		return nil, at(line, `a rule has "name" or "names", not both`)
	case j.Name != "":
		names = []string{j.Name}
	case len(names) == 0:
		return nil, at(line, `the rule names no system call: the field "names" is missing or empty`)
	}
	if slices.Contains(names, "") {
		return nil, at(line, "the name of a system call is empty")
	}
	if j.Action == "" {
		return nil, at(line, `the field "action" is missing`)
	}
	r := Rule{Names: names, line: line}
	var err error
	if r.Action, err = parseAction(line, j.Action, j.ErrnoRet, j.Errno); err != nil {
		return nil, err
	}
	if r.Only, err = j.Includes.when(line); err != nil {
		return nil, err
	}
	if r.Unless, err = j.Excludes.when(line); err != nil {
		return nil, err
	}
	conds, repeated, err := parseArgs(line, j.Args)
	if err != nil {
		return nil, err
	}
	if !repeated {
		r.Conds = conds
		return []Rule{r}, nil
	}
	var alternatives []Rule
	for _, c := range conds {
		one := r
		one.Conds = []Cond{c}
		alternatives = append(alternatives, one)
	}
	return alternatives, nil
}

// when reads "includes" or "excludes".
func (j jsonWhen) when(line int) (When, error) {
	w := When{Caps: j.Caps, Arches: j.Arches}
	if j.MinKernel == "" {
		return w, nil
	}
	v, err := ParseVersion(j.MinKernel)
	if err != nil {
		return When{}, at(line, "%v", err)
	}
	w.MinKernel = v
	return w, nil
}

// parseAction reads an action with its errno, given as a number or a name.
func parseAction(line int, name string, ret *uint, errno string) (Action, error) {
	actions := map[string]Action{
		"SCMP_ACT_ALLOW":        Allow,
		"SCMP_ACT_LOG":          Log,
		"SCMP_ACT_TRAP":         Trap,
		"SCMP_ACT_KILL":         KillThread,
		"SCMP_ACT_KILL_THREAD":  KillThread,
		"SCMP_ACT_KILL_PROCESS": KillProcess,
		"SCMP_ACT_ERRNO":        Errno(unix.EPERM),
	}
	a, ok := actions[name]
	switch {
	case name == "SCMP_ACT_TRACE" || name == "SCMP_ACT_NOTIFY":
		return 0, at(line, "action %s needs a process that listens for the calls, which a sandbox does not have", name)
	case !ok:
		return 0, at(line, "unknown action %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(actions)), ", "))
	case ret == nil && errno == "":
		return a, nil
	case name != "SCMP_ACT_ERRNO" && name != "SCMP_ACT_TRAP":
		return a, nil // profiles carry the number beside other actions, where it means nothing
	}
	code := unix.Errno(0)
	if ret != nil {
		if *ret > 4095 {
			return 0, at(line, "errno %d: the largest is 4095", *ret)
		}
		code = unix.Errno(*ret)
	}
	if errno != "" {
		named, ok := errnoByName(errno)
		if !ok {
			return 0, at(line, "unknown errno %q", errno)
		}
		if ret != nil && named != code {
			return 0, at(line, "errno %q and number %d differ", errno, *ret)
		}
		code = named
	}
	if name == "SCMP_ACT_TRAP" {
		return a | Action(code), nil
	}
	return Errno(code), nil
}

// errnoByName finds the number of "EPERM".
func errnoByName(name string) (unix.Errno, bool) {
	for e := unix.Errno(1); e < 256; e++ {
		if unix.ErrnoName(e) == name {
			return e, true
		}
	}
	return 0, false
}

// parseArgs reads the conditions and tells whether an argument is named twice.
func parseArgs(line int, args []jsonArg) (conds []Cond, repeated bool, err error) {
	ops := map[string]Op{
		"SCMP_CMP_EQ": Equal, "SCMP_CMP_NE": NotEqual,
		"SCMP_CMP_LT": Less, "SCMP_CMP_LE": LessOrEqual,
		"SCMP_CMP_GT": Greater, "SCMP_CMP_GE": GreaterOrEqual,
		"SCMP_CMP_MASKED_EQ": MaskedEqual,
	}
	var used [6]bool
	for _, a := range args {
		op, ok := ops[a.Op]
		switch {
		case !ok:
			return nil, false, at(line, "unknown comparison %q; known are %s", a.Op, strings.Join(slices.Sorted(maps.Keys(ops)), ", "))
		case a.Index == nil:
			return nil, false, at(line, `a condition has no "index"`)
		case *a.Index > 5:
			return nil, false, at(line, "argument index %d: a system call has arguments 0 to 5", *a.Index)
		}
		c := Cond{Arg: int(*a.Index), Op: op, Value: a.Value}
		if op == MaskedEqual {
			c.Mask, c.Value = a.Value, a.ValueTwo
		} else if a.ValueTwo != 0 {
			return nil, false, at(line, `"valueTwo" belongs to SCMP_CMP_MASKED_EQ, not to %s`, a.Op)
		}
		repeated = repeated || used[c.Arg]
		used[c.Arg] = true
		conds = append(conds, c)
	}
	return conds, repeated, nil
}
