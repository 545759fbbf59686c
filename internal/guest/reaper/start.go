//go:build linux

package reaper

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// start runs a command as a child of this process, with these files: working
// directory, standard input, output, error. It closes them. The command gets its
// own session, the terminal if there is one, default signals, the limits it asked
// for, and no other descriptor. forking is called once nothing is left to check.
func start(spec proc.Spec, files []int, forking func()) (pid int, failure *startFailure) {
	defer closeFDs(files)
	if err := unix.Fchdir(files[fileDir]); err != nil {
		return 0, &startFailure{reason: proc.NotDirectory, what: spec.Dir, errno: errnoOf(err)}
	}
	// The tree must not depend on this process letting go of a directory.
	defer rawChdir("/")

	path, failure := lookup(spec.Argv[0], spec.Env)
	if failure != nil {
		return 0, failure
	}
	limitCore(spec.Limits.CoreFileBytes)
	shared, own := divide(spec.Limits)
	if err := setLimits(shared); err != nil {
		return 0, &startFailure{reason: proc.Internal, what: path, errno: errnoOf(err), detail: "setting limits: " + err.Error()}
	}
	attr := &syscall.ProcAttr{
		Env:   spec.Env,
		Files: []uintptr{uintptr(files[fileStdin]), uintptr(files[fileStdout]), uintptr(files[fileStderr])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: spec.TTY != nil},
	}
	forking()
	if own != (proc.Limits{}) {
		spec.Limits = own
		return startLimited(path, spec, attr)
	}
	pid, err := forkExec(path, spec.Argv, attr)
	if err != nil {
		return 0, execFailure(path, err)
	}
	return pid, nil
}

// Bounds of waiting for a program that is still open for writing somewhere.
const (
	busyTries = 50
	busyPause = 2 * time.Millisecond
)

// forkExec is syscall.ForkExec on a thread that blocks no signal. A program that
// was written a moment ago can be open for writing in a process that another
// thread has forked and that has not yet reached its own exec; that passes.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	unmasked(func() {
		for range busyTries {
			pid, err = syscall.ForkExec(path, argv, attr)
			if err != syscall.ETXTBSY {
				return
			}
			time.Sleep(busyPause)
		}
	})
	return pid, err
}

// limitCore limits core files of what this process starts; it makes none itself.
func limitCore(bytes uint64) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil {
		return
	}
	n := min(bytes, now.Max)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: n, Max: n}) // lowering is always allowed
}
