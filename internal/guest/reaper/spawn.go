//go:build linux

package reaper

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// child is a reaper as the Runner sees it: a child process and the connection to
// it.
type child struct {
	pid  int
	conn *conn
	// Owned by who has it:
	turn   uint64      // counts the commands it was given
	limits proc.Limits // that hold for it since the first one
}

// fits reports whether it can run a command with these limits, see divide.
func (c *child) fits(shared proc.Limits) bool { return c.turn == 0 || c.limits == shared }

// spawn starts a reaper. It gets its own session, so that nothing meant for the
// helper's process group reaches it.
func (r *Runner) spawn() (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a control connection: %w", err)
	}
	theirs := pair[1]
	defer unix.Close(theirs)
	c, err := newConn(pair[0])
	if err != nil {
		_ = unix.Close(pair[0])
		return nil, err
	}
	null, err := openNull(unix.O_RDWR)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("opening nothing: %w", err)
	}
	defer unix.Close(null)

	stderr := null
	if r.stderr != nil {
		if stderr, err = descriptor(r.stderr); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	pid, err := r.forkReaper([]uintptr{uintptr(null), uintptr(null), uintptr(stderr), uintptr(theirs)})
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("starting a reaper: %w", err)
	}
	return &child{pid: pid, conn: c}, nil
}

// forkReaper runs the helper's program in the role of a reaper.
func (r *Runner) forkReaper(files []uintptr) (pid int, err error) {
	argv := append([]string{programName, roleReap}, titleArgs(r.tag)...)
	attr := &syscall.ProcAttr{Env: roleEnv(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true}}
	fork := func() { pid, err = r.reapers.fork(r.self, argv, attr) }
	switch {
	case r.orphans == nil:
		fork()
	case !r.orphans.onForkThread(fork):
		return 0, errClosed
	}
	if err == syscall.EBADF {
		// The child was to have a descriptor above its limit: as good as none left.
		err = syscall.EMFILE
	}
	return pid, err
}

// discardReaper ends a reaper that has no command.
func (r *Runner) discardReaper(c *child) {
	_ = c.conn.Close()
	r.reapers.signal(c.pid, unix.SIGKILL)
	r.reapers.bury(c.pid)
}

// obituary says how a reaper ended that should not have.
func obituary(status unix.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("the command's reaper was killed (signal %d)", int(status.Signal()))
	}
	return fmt.Sprintf("the command's reaper ended (status %d)", status.ExitStatus())
}
