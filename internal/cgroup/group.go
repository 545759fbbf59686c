package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a group; zero means no limit.
type Limits struct {
	Pids        int64
	MemoryBytes int64
	CPUs        float64
}

// cpuPeriod is the time over which processor time is counted, in microseconds.
const cpuPeriod = 100_000

// Group is a control group, in every hierarchy it needs. Safe for concurrent use.
type Group struct {
	v1 []string
	v2 string
	// memory is the directory with the memory controller.
	memory string
}

// MaxName is the longest name of a group, in bytes.
const MaxName = 128

// Create makes a group of that name with limits. The name is one path element; a
// group of that name that exists is taken over if it is empty of processes.
// announce gets the directories of the group before the first of them is made, so
// that a group whose maker dies can be found again ([Leftover]); its error ends the
// attempt. It may be nil.
//
// Limits that cannot be set here are left out and returned with the reason; when
// none can be set, the group is nil.
func (h *Host) Create(name string, l Limits, announce func(dirs []string) error) (*Group, map[Controller]error, error) {
	if name == "" || len(name) > MaxName || name[0] == '.' || strings.ContainsAny(name, "/\x00\n") {
		return nil, nil, fmt.Errorf("%q is no name of a control group", name)
	}
	places, missing := h.choose(name, l)
	g := &Group{}
	for _, c := range controllers() {
		switch p := places[c]; {
		case p.Version == 2:
			g.v2 = p.Dir
		case p.Version == 1 && !slices.Contains(g.v1, p.Dir): // some are mounted together
			g.v1 = append(g.v1, p.Dir)
		}
	}
	if len(places) == 0 {
		return nil, missing, nil
	}
	g.memory = places[Memory].Dir
	if announce != nil {
		if err := announce(g.Dirs()); err != nil {
			return nil, nil, err
		}
	}
	for _, dir := range g.Dirs() {
		if err := makeGroup(dir); err != nil {
			return nil, nil, errors.Join(err, g.discard())
		}
	}
	set := 0
	for _, c := range controllers() {
		p, ok := places[c]
		if !ok {
			continue
		}
		var err error
		if p.Version == 2 {
			err = setV2(p.Dir, c, l)
		} else {
			err = setV1(p.Dir, c, l)
		}
		if err != nil {
			missing[c] = err
			continue
		}
		set++
	}
	if set == 0 {
		return nil, missing, g.discard()
	}
	return g, missing, nil
}

// choose finds a directory for every controller that the limits need.
func (h *Host) choose(name string, l Limits) (map[Controller]Place, map[Controller]error) {
	wanted := map[Controller]bool{Pids: l.Pids > 0, Memory: l.MemoryBytes > 0, CPU: l.CPUs > 0}
	places, missing := map[Controller]Place{}, map[Controller]error{}
	var unified []Controller
	for _, c := range controllers() {
		if !wanted[c] {
			continue
		}
		switch p, err := h.place(c); {
		case err != nil:
			missing[c] = err
		case p.Version == 2:
			unified = append(unified, c)
		default:
			places[c] = Place{Dir: filepath.Join(p.Dir, name), Version: 1}
		}
	}
	// A process is in one group of the unified hierarchy: one place for as many of
	// the controllers as possible, the last of them given up first.
	for n := len(unified); n > 0; n-- {
		dir, err := h.hands(unified[:n])
		if err != nil {
			missing[unified[n-1]] = err
			continue
		}
		for _, c := range unified[:n] {
			places[c] = Place{Dir: filepath.Join(dir, name), Version: 2}
		}
		break
	}
	return places, missing
}

// discard removes what was made of a group that came to nothing.
func (g *Group) discard() error {
	var failures []error
	for _, dir := range g.Dirs() {
		if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// makeGroup makes a directory, or takes over an empty group.
func makeGroup(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	procs, err := words(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(procs) > 0 {
		return fmt.Errorf("the group %s has processes: %w", dir, fs.ErrExist)
	}
	return nil
}

// setV1 sets one limit of version 1.
func setV1(dir string, c Controller, l Limits) error {
	switch c {
	case Pids:
		return write(dir, "pids.max", strconv.FormatInt(l.Pids, 10))
	case Memory:
		bytes := strconv.FormatInt(l.MemoryBytes, 10)
		if err := write(dir, "memory.limit_in_bytes", bytes); err != nil {
			return err
		}
		// Memory and swap together, where the kernel counts swap.
		if err := write(dir, "memory.memsw.limit_in_bytes", bytes); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case CPU:
		if err := write(dir, "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)); err != nil {
			return err
		}
		return write(dir, "cpu.cfs_quota_us", strconv.FormatInt(quota(l.CPUs), 10))
	}
	return nil
}

// setV2 sets one limit of version 2.
func setV2(dir string, c Controller, l Limits) error {
	switch c {
	case Pids:
		return write(dir, "pids.max", strconv.FormatInt(l.Pids, 10))
	case Memory:
		if err := write(dir, "memory.max", strconv.FormatInt(l.MemoryBytes, 10)); err != nil {
			return err
		}
		if err := write(dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case CPU:
		return write(dir, "cpu.max", fmt.Sprintf("%d %d", quota(l.CPUs), cpuPeriod))
	}
	return nil
}

// quota is the processor time per period, at least what the kernel accepts.
func quota(cpus float64) int64 { return max(1000, int64(cpus*cpuPeriod)) }

// Dirs are the directories of the group, to be kept for [Leftover].
func (g *Group) Dirs() []string {
	dirs := slices.Clone(g.v1)
	if g.v2 != "" {
		dirs = append(dirs, g.v2)
	}
	return dirs
}

// Leftover is the group with these directories, made by an earlier process under
// that name. Directories with another name are refused: a damaged record must not
// direct us to a group that is not ours.
func Leftover(name string, dirs []string) (*Group, error) {
	g := &Group{}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || filepath.Base(dir) != name {
			return nil, fmt.Errorf("%q is no control group named %q", dir, name)
		}
		var st unix.Statfs_t
		switch err := unix.Statfs(dir, &st); {
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return nil, &os.PathError{Op: "statfs", Path: dir, Err: err}
		case st.Type == unix.CGROUP2_SUPER_MAGIC:
			g.v2 = dir
		case st.Type == unix.CGROUP_SUPER_MAGIC:
			g.v1 = append(g.v1, dir)
		default:
			return nil, fmt.Errorf("%q is not in a file system of control groups", dir)
		}
	}
	return g, nil
}

// Pids lists the processes in the group.
func (g *Group) Pids() ([]int, error) {
	var out []int
	for _, dir := range g.Dirs() {
		procs, err := words(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range procs {
			if pid, err := strconv.Atoi(p); err == nil && pid > 0 {
				out = append(out, pid)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// OOMKills is how often the kernel has ended a process of the group for want of
// memory.
func (g *Group) OOMKills() int64 {
	if g == nil || g.memory == "" {
		return 0
	}
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		data, err := os.ReadFile(filepath.Join(g.memory, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				kills, _ := strconv.ParseInt(n, 10, 64)
				return kills
			}
		}
	}
	return 0
}

// Kill sends SIGKILL to every process in the group, new ones too, until it is empty
// or ctx has ended. This process is never among them.
func (g *Group) Kill(ctx context.Context) error {
	if g.v2 != "" {
		// One write ends all of them; kernels before 5.14 have no such file.
		if err := write(g.v2, "cgroup.kill", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("kill the group %s: %w", g.v2, err)
		}
	}
	return poll(ctx, func() (bool, error) {
		pids, err := g.Pids()
		if err != nil {
			return false, err
		}
		left := false
		for _, pid := range pids {
			if pid == os.Getpid() { // a thread of ours that has entered it
				continue
			}
			left = true
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		return !left, nil
	})
}

// Remove deletes the group once its processes are gone; it kills nothing. Until ctx
// has ended it tries again, since the last process leaves a little after its end.
func (g *Group) Remove(ctx context.Context) error {
	return poll(ctx, func() (bool, error) {
		left := false
		for _, dir := range g.Dirs() {
			err := os.Remove(dir)
			switch {
			case err == nil, errors.Is(err, fs.ErrNotExist):
			case errors.Is(err, unix.EBUSY):
				left = true
			default:
				return false, err
			}
		}
		return !left, nil
	})
}

// poll repeats step until it is done or ctx has ended: the kernel gives no event
// for the emptiness of a version 1 group.
func poll(ctx context.Context, step func() (bool, error)) error {
	wait := 200 * time.Microsecond
	for {
		done, err := step()
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("control group still has processes: %w", ctx.Err())
		case <-timer.C:
		}
		wait = min(2*wait, 20*time.Millisecond)
	}
}
