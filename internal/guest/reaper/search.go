//go:build linux

package reaper

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// TagVar is the environment variable that carries the session tag of the helper a
// command was started by. Sweep finds by it what the session left running.
const TagVar = "BERTH_TAG"

// The names of helpers and reapers in a process list, which they give themselves
// with [Harden]. A search knows them by it.
const (
	HelperName = "berth-guest"
	reaperName = "berth-reap"
)

// search looks in the process table for trees that no reaper of this process
// answers for. It is the second net: it sees only processes that still carry a
// variable, what stands below a reaper that shows the marker or tag, and what
// descends from either at this moment. A process that has dropped the variable, and
// whose parents and reaper are gone, is not found. So that nothing was found proves
// less than ECHILD does.
type search struct {
	// carried are the variables, "KEY=value", any of which makes a process a match.
	carried []string
	// reaping are arguments of a reaper any of which makes its descendants matches.
	reaping []string
	// serving are arguments of a helper any of which makes it a match.
	serving []string
	// spareLive leaves alone what stands below a reaper whose helper lives.
	spareLive bool
	// own are the reapers of this process: their trees are not searched for, since
	// they are ended by those reapers.
	own *reapers
}

// quarry is a set of processes: parents by process id.
type quarry map[int]int

// find returns the matches that are alive and their descendants, never this
// process, one of those it descends from, or a reaper that ends with its tree.
func (s search) find() (quarry, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	table := make(map[int]procStat, len(all))
	children := make(map[int][]int)
	for _, pid := range all {
		if st, err := readStat(pid); err == nil {
			table[pid] = st
			children[st.ppid] = append(children[st.ppid], pid)
		}
	}

	spared := make(map[int]bool) // not to be touched themselves
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = table[pid].ppid {
		spared[pid] = true
	}
	walled := make(map[int]bool) // not to be entered either
	var todo []int
	for pid, st := range table {
		reaping := st.name == reaperName
		switch {
		case s.own.has(pid), reaping && s.spareLive && table[st.ppid].name == HelperName:
			walled[pid] = true
		case spared[pid]:
		case s.carries(pid): // a true reaper never does
			todo = append(todo, pid)
		case len(s.serving) > 0 && st.name == HelperName && runBy(pid, os.Geteuid()) && matchesAny(helperArgs(pid), s.serving):
			todo = append(todo, pid)
		case reaping && matchesAny(reaperArgs(pid), s.reaping):
			spared[pid] = true               // it ends when its tree has
			_ = unix.Kill(pid, unix.SIGCONT) // unless somebody stopped it
			todo = append(todo, pid)
		}
	}
	if s.spareLive {
		todo = outside(todo, walled, table)
	}

	found := make(quarry)
	entered := make(map[int]bool)
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		if entered[pid] || walled[pid] {
			continue
		}
		entered[pid] = true
		if !spared[pid] && !table[pid].dead() {
			found[pid] = table[pid].ppid
		}
		todo = append(todo, children[pid]...)
	}
	return found, nil
}

// outside keeps those that do not stand below a walled process.
func outside(list []int, walled map[int]bool, table map[int]procStat) []int {
	kept := list[:0]
	for _, pid := range list {
		below := false
		for p, steps := pid, 0; p > 0 && steps < len(table) && !below; p, steps = table[p].ppid, steps+1 {
			below = walled[p]
		}
		if !below {
			kept = append(kept, pid)
		}
	}
	return kept
}

// carries reports whether a process of this user has one of the variables.
func (s search) carries(pid int) bool {
	if !ownedBy(pid, os.Geteuid()) {
		return false
	}
	env, err := readMemory("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for len(env) > 0 {
		var v []byte
		v, env, _ = bytes.Cut(env, []byte{0})
		if slices.Contains(s.carried, string(v)) {
			return true
		}
	}
	return false
}

// reaperArgs returns the arguments of a process in the role of a reaper, or nil.
// Any process can pretend to be one, by name and arguments. If it no longer carries
// the variable either it gains nothing but what it had: not to be found.
func reaperArgs(pid int) []string {
	words := commandLine(pid)
	if len(words) < 2 || words[0] != programName || words[1] != roleReap {
		return nil
	}
	return words[2:]
}

// helperArgs returns the arguments of a helper that serves, or nil.
func helperArgs(pid int) []string {
	words := commandLine(pid)
	if len(words) < 2 || words[1] != "serve" {
		return nil
	}
	return words[2:]
}

// commandLine returns a process's words, nil when it has none.
func commandLine(pid int) []string {
	b, err := readMemory("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// runBy reports whether a process has this effective user id. Other than the owner of its
// directory in /proc this is true of a process that cannot be debugged, too.
func runBy(pid, uid int) bool {
	b, err := readMemory("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			f := strings.Fields(ids)
			return len(f) > 1 && f[1] == strconv.Itoa(uid)
		}
	}
	return false
}

func matchesAny(args, wanted []string) bool {
	for _, a := range args {
		if slices.Contains(wanted, a) {
			return true
		}
	}
	return false
}

// end ends what it finds: SIGTERM, grace (none if negative), then SIGKILL, until a
// search finds nothing.
func (s search) end(ctx context.Context, grace time.Duration) (proc.TerminateResult, error) {
	result := proc.TerminateResult{Outcome: proc.Unknown}
	if grace >= 0 {
		q, err := s.find()
		if err != nil {
			return result, err
		}
		pins := q.pin()
		pins.signal(unix.SIGTERM, unix.SIGCONT)
		pins.await(ctx, time.Now().Add(grace))
		result.Killed += pins.close()
	}
	for deadline := time.Now().Add(killBound); ; {
		q, err := s.find()
		if err != nil {
			return result, err
		}
		switch {
		case len(q) == 0:
			result.Outcome = proc.Gone
			return result, nil
		case ctx.Err() != nil:
			return result, ctx.Err()
		case time.Now().After(deadline):
			result.Outcome = proc.Survivors
			for pid := range q {
				if len(result.Pids) < maxPids {
					result.Pids = append(result.Pids, pid)
				}
			}
			return result, nil
		}
		pins := q.pin()
		pins.signal(unix.SIGSTOP)
		pins.signal(unix.SIGKILL)
		pins.await(ctx, time.Now().Add(maxPassInterval))
		result.Killed += pins.close()
	}
}
