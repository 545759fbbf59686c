package bubblewrap

import (
	"fmt"
	"log/slog"
	"maps"
	"strconv"

	"github.com/workberth/workberth/internal/cgroup"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/seccomp"
	"github.com/workberth/workberth/sandbox"
)

// overhead is how many processes and threads belong to the sandbox itself: bwrap,
// the helper, and the thread that started them.
const overhead = 16

// enforceable says which limits of a whole sandbox can be kept on this machine. A
// memory limit without control groups is one on the address space of each process,
// which is no limit of the sandbox and which programs that reserve much (Go's, the
// JVM's) do not start under.
type enforceable struct {
	pids, memory, cpu bool
	// why control groups cannot be made.
	why string
}

// enforceable looks at this machine.
func (b *Backend) enforceable() enforceable {
	e := enforceable{pids: countsPerNamespace(b.selfUID())}
	host, err := cgroup.Find()
	if err != nil {
		e.why = err.Error()
		return e
	}
	places, missing := host.Places()
	for c := range places {
		switch c {
		case cgroup.Pids:
			e.pids = true
		case cgroup.Memory:
			e.memory = true
		case cgroup.CPU:
			e.cpu = true
		}
	}
	if err := missing[cgroup.CPU]; err != nil {
		e.why = err.Error()
	}
	return e
}

// countsPerNamespace reports whether RLIMIT_NPROC bounds the processes of one
// sandbox: since Linux 5.14 it counts per user namespace, and it has never bound
// root.
func countsPerNamespace(uid int) bool {
	facts, err := seccomp.HostFacts()
	if err != nil || uid == 0 {
		return false
	}
	k := facts.Kernel
	return k.Major > 5 || k.Major == 5 && k.Minor >= 14
}

// limits is how the limits of one sandbox are kept.
type limits struct {
	group *cgroup.Group
	// each is set on every command.
	each proc.Limits
	// facts tell people what is in force.
	facts map[string]string
}

// groupName is the name of a control group: one per generation, so that the
// leftover of a dead one is never mistaken for a live one.
func groupName(id sandbox.ID, tag string) string { return "berth-" + string(id) + "-" + tag }

// announce is told the name and the directories of a control group before it is made.
type announce func(name string, dirs []string) error

// newLimits makes the control group of a sandbox, as far as this is possible, and
// decides what takes its place. With an error the result may hold a group.
func newLimits(id sandbox.ID, tag string, want sandbox.Limits, a account, userns bool, tell announce, log *slog.Logger) (*limits, error) {
	l := &limits{
		each: proc.Limits{
			OpenFiles: uint64(want.OpenFiles), FileSize: uint64(want.FileSizeBytes),
		},
		facts: map[string]string{},
	}
	missing := map[cgroup.Controller]error{}
	if want.Pids > 0 || want.MemoryBytes > 0 || want.CPUs > 0 {
		if err := l.makeGroup(groupName(id, tag), want, missing, tell); err != nil {
			return nil, err
		}
	}
	in := func(c cgroup.Controller, value string) bool {
		if missing[c] != nil {
			return false
		}
		l.facts["limit."+string(c)] = value + ", by a control group"
		return true
	}
	if want.Pids > 0 && !in(cgroup.Pids, strconv.FormatInt(want.Pids, 10)) {
		if userns && countsPerNamespace(a.UID) {
			l.each.Processes = uint64(want.Pids + overhead)
			l.facts["limit.pids"] = fmt.Sprintf("%d, by RLIMIT_NPROC", want.Pids)
		} else {
			l.facts["limit.pids"] = fmt.Sprintf("not in force: %v", missing[cgroup.Pids])
			log.Warn("the number of processes is not bounded: no control group can be made, and RLIMIT_NPROC does not bind root",
				"sandbox", id, "error", missing[cgroup.Pids])
		}
	}
	if want.MemoryBytes > 0 && !in(cgroup.Memory, strconv.FormatInt(want.MemoryBytes, 10)+" bytes") {
		l.each.AddressSpace = uint64(want.MemoryBytes)
		l.facts["limit.memory"] = fmt.Sprintf("%d bytes per process, by RLIMIT_AS", want.MemoryBytes)
	}
	if want.CPUs > 0 && !in(cgroup.CPU, strconv.FormatFloat(want.CPUs, 'f', -1, 64)) {
		// Refused before, unless the place for groups has gone since.
		return l, &sandbox.Problem{
			Field: "limits", What: fmt.Sprintf("cpus %v", want.CPUs), Rule: missing[cgroup.CPU].Error(),
			Remedy: "leave it out", Err: sandbox.ErrRefused,
		}
	}
	return l, nil
}

// makeGroup makes the control group and notes what it cannot do.
func (l *limits) makeGroup(name string, want sandbox.Limits, missing map[cgroup.Controller]error, tell announce) error {
	none := func(err error) {
		for _, c := range []cgroup.Controller{cgroup.Pids, cgroup.Memory, cgroup.CPU} {
			missing[c] = err
		}
	}
	host, err := cgroup.Find()
	if err != nil {
		none(err)
		return nil
	}
	bound := cgroup.Limits{MemoryBytes: want.MemoryBytes, CPUs: want.CPUs}
	if want.Pids > 0 {
		bound.Pids = want.Pids + overhead
	}
	group, left, err := host.Create(name, bound, func(dirs []string) error { return tell(name, dirs) })
	if err != nil {
		return err
	}
	maps.Copy(missing, left)
	l.group = group
	return nil
}
