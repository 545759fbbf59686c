package seccomp

import (
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// branch is one alternative for a call: conditions that must all hold, none for
// the last alternative.
type branch struct {
	conds  []Cond
	action Action
	line   int
}

// table is a policy for one architecture and one machine.
type table struct {
	arch     *arch.Info
	fallback Action
	calls    map[uint32][]branch
	// unknown lists names that no architecture we know has.
	unknown []string
}

// archInfo returns the table of an architecture that can be compiled for.
func archInfo(goarch string) (*arch.Info, error) {
	switch goarch {
	case "amd64":
		return arch.X86_64, nil
	case "arm64":
		return arch.AARCH64, nil
	}
	return nil, fmt.Errorf("system-call filters can be made for amd64 and arm64, not for %q", goarch)
}

// known reports whether any architecture with a table has the call.
func known(name string) bool {
	for _, a := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386, arch.ARM, arch.X32} {
		if _, ok := a.SyscallNames[name]; ok {
			return true
		}
	}
	return false
}

// resolve picks the rules that hold on this machine and sorts them by call.
func resolve(p Policy, f Facts) (*table, error) {
	info, err := archInfo(f.Arch)
	if err != nil {
		return nil, err
	}
	t := &table{arch: info, fallback: p.Default, calls: map[uint32][]branch{}}
	final := map[uint32]branch{}
	for _, r := range p.Rules {
		if !r.Only.all(f) || r.Unless.any(f) {
			continue
		}
		if err := checkConds(r); err != nil {
			return nil, err
		}
		for _, name := range r.Names {
			nr, ok := info.SyscallNames[name]
			if !ok {
				if known(name) {
					continue
				}
				if p.Default.permits() && !r.Action.permits() {
					return nil, at(r.line, "system call %q is not known here, so it cannot be denied: correct or remove the name", name)
				}
				t.unknown = append(t.unknown, name)
				continue
			}
			n := uint32(nr)
			if len(r.Conds) > 0 {
				t.calls[n] = append(t.calls[n], branch{conds: r.Conds, action: r.Action, line: r.line})
				continue
			}
			if other, ok := final[n]; ok && other.action != r.Action {
				return nil, at(r.line, "system call %q has two rules without conditions that contradict each other: %s%s and %s",
					name, other.action, onLine(other.line), r.Action)
			}
			final[n] = branch{action: r.Action, line: r.line}
		}
	}
	for n, b := range final {
		t.calls[n] = append(t.calls[n], b)
	}
	slices.Sort(t.unknown)
	t.unknown = slices.Compact(t.unknown)
	return t, nil
}

// checkConds holds the bounds that the assembler relies on.
func checkConds(r Rule) error {
	if len(r.Conds) > 6 {
		return at(r.line, "a rule has at most 6 conditions, this one has %d", len(r.Conds))
	}
	for _, c := range r.Conds {
		if c.Arg < 0 || c.Arg > 5 {
			return at(r.line, "argument index %d: a system call has arguments 0 to 5", c.Arg)
		}
	}
	return nil
}

// all reports whether everything named holds.
func (w When) all(f Facts) bool {
	for _, c := range w.Caps {
		if !slices.Contains(f.Caps, c) {
			return false
		}
	}
	if len(w.Arches) > 0 && !slices.Contains(w.Arches, f.Arch) {
		return false
	}
	return !f.Kernel.Before(w.MinKernel)
}

// any reports whether something named holds.
func (w When) any(f Facts) bool {
	for _, c := range w.Caps {
		if slices.Contains(f.Caps, c) {
			return true
		}
	}
	if slices.Contains(w.Arches, f.Arch) {
		return true
	}
	return w.MinKernel != Version{} && !f.Kernel.Before(w.MinKernel)
}

// decide evaluates the table for one call of the table's own convention.
func (t *table) decide(nr uint32, args [6]uint64) Action {
next:
	for _, b := range t.calls[nr] {
		for _, c := range b.conds {
			if !c.holds(args[c.Arg]) {
				continue next
			}
		}
		return b.action
	}
	return t.fallback
}

// onLine gives " (line N)" where there is a line.
func onLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", line)
}
