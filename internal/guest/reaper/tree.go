//go:build linux

package reaper

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tree is the set of all descendants of this process, or of those that are
// children of one of its threads. Any reading of it is out of date at once; what
// counts is ECHILD.
type tree struct {
	self int // this process
	// thread restricts the tree to children of this thread; zero means all.
	thread int
	// spared are children that do not belong to the tree, nor does what they
	// started. It may be nil.
	spared func(pid int) bool
	// scan is true where the kernel keeps no lists of children.
	scan bool
}

// newTree is the tree below this process, restricted to one thread's children
// unless thread is zero.
func newTree(thread int, spared func(pid int) bool) tree {
	self := os.Getpid()
	_, err := childrenOf(self, self)
	return tree{self: self, thread: thread, spared: spared, scan: err == unix.ENOENT}
}

// walk calls visit for every descendant, parents first.
func (t tree) walk(visit func(pid int)) {
	if t.scan {
		t.walkScan(visit)
		return
	}
	todo := t.roots()
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		visit(pid)
		todo = append(todo, allChildren(pid)...)
	}
}

// roots lists the children of this process that belong to the tree.
func (t tree) roots() []int {
	var list []int
	if t.thread != 0 {
		list, _ = childrenOf(t.self, t.thread) // an unreadable list is an empty one: ECHILD decides
	} else {
		list = allChildren(t.self)
	}
	if t.spared == nil {
		return list
	}
	kept := list[:0]
	for _, pid := range list {
		if !t.spared(pid) {
			kept = append(kept, pid)
		}
	}
	return kept
}

// allChildren lists the children of all threads of a process. A process that is
// gone has none.
func allChildren(pid int) []int {
	tids, err := threads(pid)
	if err != nil {
		return nil
	}
	var list []int
	for _, tid := range tids {
		c, err := childrenOf(pid, tid)
		if err == nil {
			list = append(list, c...)
		}
	}
	return list
}

// walkScan is walk by the parents of all processes.
func (t tree) walkScan(visit func(pid int)) {
	all, err := pids()
	if err != nil {
		return
	}
	children := make(map[int][]int)
	for _, pid := range all {
		if s, err := readStat(pid); err == nil {
			children[s.ppid] = append(children[s.ppid], pid)
		}
	}
	todo := []int{t.self}
	for len(todo) > 0 {
		parent := todo[0]
		todo = todo[1:]
		for _, pid := range children[parent] {
			if parent == t.self && t.spared != nil && t.spared(pid) {
				continue
			}
			visit(pid)
			todo = append(todo, pid)
		}
	}
}

// list returns all descendants.
func (t tree) list() (pids []int) {
	t.walk(func(pid int) { pids = append(pids, pid) })
	return pids
}

// running lists the descendants that are not dead, at most limit.
func (t tree) running(limit int) (pids []int) {
	t.walk(func(pid int) {
		if len(pids) == limit {
			return
		}
		if s, err := readStat(pid); err == nil && !s.dead() {
			pids = append(pids, pid)
		}
	})
	return pids
}

// belongs tells whether a process with this parent is in the tree, given the
// members seen so far.
func (t tree) belongs(pid, ppid int, seen map[int]bool) bool {
	return seen[ppid] || ppid == t.self && (t.spared == nil || !t.spared(pid))
}

// signal sends sig to a member of the tree. A process that took over the number
// of a member is not touched: the process is pinned first and then looked at.
func (t tree) signal(pid int, sig unix.Signal, seen map[int]bool) error {
	fd, err := rawPidfdOpen(pid)
	pinned := err == nil
	switch {
	case pinned:
		defer rawClose(fd)
	case err == unix.ESRCH:
		return err
	}
	s, err := readStat(pid)
	if err != nil {
		return err
	}
	if !t.belongs(pid, s.ppid, seen) {
		return unix.ESRCH
	}
	if pinned {
		err := rawPidfdSendSignal(fd, sig)
		if err != unix.ENOSYS && err != unix.EPERM {
			return err
		}
	}
	return rawKill(pid, sig) // an old kernel, or a filter without pidfds
}

// spread sends signals to every member, each member once, until a walk finds no
// new one or the rounds are over. It returns whom it found.
func (t tree) spread(rounds int, sigs ...unix.Signal) map[int]bool {
	seen := make(map[int]bool)
	for range rounds {
		var fresh []int
		t.walk(func(pid int) {
			if !seen[pid] {
				seen[pid] = true
				fresh = append(fresh, pid)
			}
		})
		if len(fresh) == 0 {
			break
		}
		for _, pid := range fresh {
			for _, sig := range sigs {
				_ = t.signal(pid, sig, seen) // who is gone needs none; who refuses is seen again
			}
		}
	}
	return seen
}

// Bounds of ending a tree.
const (
	stopRounds = 8  // walks in search of processes forked meanwhile, per pass
	termRounds = 3  // the same for SIGTERM
	maxPids    = 64 // survivors that are listed
	// killBound is how long processes may take to die of SIGKILL before they are
	// called survivors.
	killBound = 10 * time.Second
	// The time between two passes when nothing dies: doubled up to the longer.
	passInterval    = 20 * time.Millisecond
	maxPassInterval = time.Second
)

// slayer kills a tree in passes. Who owns it waits for the processes and tells it
// which have been reaped.
type slayer struct {
	tree     tree
	awaited  map[int]bool // killed in the last pass and not reaped yet
	interval time.Duration
}

// pass stops and kills everything it finds. Stopping first keeps a fork bomb from
// outrunning it: once a walk finds nothing new, nobody is left who forks, except
// who was in the middle of it. Those are found by the next pass, which is due when
// all that were killed have been reaped, since then no fork is under way.
func (s *slayer) pass() {
	seen := s.tree.spread(stopRounds, unix.SIGSTOP)
	for pid := range seen {
		if s.tree.signal(pid, unix.SIGKILL, seen) == unix.ESRCH {
			delete(seen, pid)
		}
	}
	s.awaited = seen
}

// reaped takes note that a process has been waited for, and reports whether the
// next pass is due.
func (s *slayer) reaped(pid int) bool {
	if !s.awaited[pid] {
		return false
	}
	delete(s.awaited, pid)
	return len(s.awaited) == 0
}

// pause is how long to wait for the death of those killed before the next pass.
func (s *slayer) pause() time.Duration {
	s.interval = min(max(2*s.interval, passInterval), maxPassInterval)
	return s.interval
}
