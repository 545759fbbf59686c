//go:build linux

package reaper

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reapers is the table of this process's children that are reapers. A child that
// is not in it is an orphan, or somebody else's.
type reapers struct {
	mu   sync.Mutex
	pids map[int]bool // forked and not yet waited for
}

func newReapers() *reapers { return &reapers{pids: make(map[int]bool)} }

// fork starts a reaper. It is in the table before anybody can ask.
func (r *reapers) fork(exe string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err = syscall.ForkExec(exe, argv, attr)
	if err == nil {
		r.pids[pid] = true
	}
	return pid, err
}

// has reports whether pid is a reaper.
func (r *reapers) has(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[pid]
}

// signal sends a signal to a reaper that has not been waited for, so that its
// number is still its own.
func (r *reapers) signal(pid int, sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids[pid] {
		_ = unix.Kill(pid, sig) // a zombie needs none
	}
}

// release takes a reaper off the table that nobody will wait for: its number can
// come to mean another process.
func (r *reapers) release(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
}

// bury waits for a reaper to end and says how it did.
func (r *reapers) bury(pid int) unix.WaitStatus {
	awaitEnd(pid) // without the lock, and without taking its number away
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status
		}
	}
}

// awaitEnd returns when a child has ended. It keeps no thread waiting, as long as
// the kernel has pidfds: many reapers can end at a time, where there may be no room
// for a thread each.
func awaitEnd(pid int) {
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		_ = unix.SetNonblock(fd, true)
		f := os.NewFile(uintptr(fd), "reaper")
		defer f.Close()
		if raw, err := f.SyscallConn(); err == nil {
			err = raw.Read(func(uintptr) bool { return waitEnd(pid, unix.WNOHANG) })
			if err == nil {
				return
			}
		}
	}
	waitEnd(pid, 0)
}

// waitEnd reports whether a child has ended, or is none; without WNOHANG it waits.
func waitEnd(pid, options int) bool {
	for {
		var info unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil); err {
		case nil:
			return info.Signo != 0
		case unix.EINTR:
		default:
			return true
		}
	}
}
