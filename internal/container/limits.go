package container

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/sandbox"
)

// overhead is how many processes and threads belong to the sandbox itself: the init and the helper.
const overhead = 16

// limits is how the limits of one sandbox are kept.
type limits struct {
	// group are those of the container's control group.
	group Limits
	// each are set on every command.
	each proc.Limits
	// facts tell people what is in force.
	facts map[string]string
}

// limitsFor decides how limits are kept by an engine, for processes of the user uid inside. One that
// it cannot keep is refused.
func (b *Backend) limitsFor(want sandbox.Limits, about Description, uid int) (*limits, error) {
	l := &limits{
		each:  proc.Limits{OpenFiles: uint64(want.OpenFiles), FileSize: uint64(want.FileSizeBytes)},
		facts: map[string]string{},
	}
	no := func(what string) error {
		return &sandbox.Problem{
			Field: "limits", What: what, Rule: "this " + b.opts.Name + " engine has no control group for it",
			Remedy: "leave it out, or delegate control groups to the engine's user", Err: sandbox.ErrRefused,
		}
	}
	const byGroup = ", by a control group"
	switch {
	case want.Pids <= 0:
	case about.PidsLimit:
		l.group.Pids = want.Pids + overhead
		l.facts["limit.pids"] = strconv.FormatInt(want.Pids, 10) + byGroup
	case about.KeepsID && about.Rootless && uid != 0:
		// Such a container has a user namespace of its own, for which the kernel counts.
		l.each.Processes = uint64(want.Pids + overhead)
		l.facts["limit.pids"] = fmt.Sprintf("%d, by RLIMIT_NPROC", want.Pids)
	default:
		return nil, no(fmt.Sprintf("pids %d", want.Pids))
	}
	if want.MemoryBytes > 0 {
		if !about.MemoryLimit {
			return nil, no(fmt.Sprintf("memory %d", want.MemoryBytes))
		}
		l.group.MemoryBytes = want.MemoryBytes
		l.facts["limit.memory"] = fmt.Sprintf("%d bytes%s", want.MemoryBytes, byGroup)
	}
	if want.CPUs > 0 {
		if !about.CPULimit {
			return nil, no(fmt.Sprintf("cpus %v", want.CPUs))
		}
		l.group.CPUs = want.CPUs
		l.facts["limit.cpu"] = strconv.FormatFloat(want.CPUs, 'f', -1, 64) + byGroup
	}
	return l, nil
}

// checkUser refuses an engine whose containers would belong to somebody else.
func checkUser(about Description) error {
	switch {
	case about.Rootless && os.Geteuid() == 0:
		return &sandbox.Problem{
			What: "a rootless engine, used by root", Rule: "its containers would belong to another user than the workspace",
			Remedy: "use the engine's own user, or a rootful engine", Err: sandbox.ErrUnavailable,
		}
	case !about.Rootless && slices.Contains(about.Security, "userns"):
		return &sandbox.Problem{
			What: "an engine that maps the users of its containers to others", Rule: "they could not use the workspace, and what they write would belong to nobody",
			Remedy: "set no userns-remap for the engine, or use a rootless one", Err: sandbox.ErrUnavailable,
		}
	}
	return nil
}
