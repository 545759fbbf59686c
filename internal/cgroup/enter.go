package cgroup

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Thread runs f on a thread of its own that ends when f returns. A process started
// there has that thread as its parent, and is in the groups that the thread has
// entered by [Group.Enter].
func Thread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			f()
			return // still locked: the runtime ends the thread
		}
		// The process's first thread cannot end. Hold it until another goroutine
		// runs, which then has another thread.
		held := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(held)
			f()
		}()
		<-held
		runtime.UnlockOSThread()
	}()
}

// Enter makes the next process that is started from this thread with attr a member
// of the group from its first moment. The caller runs in [Thread]. For version 1 the
// thread itself enters the group, which is why it must not be used again for
// anything else; for version 2 the kernel places the new process.
//
// The returned function frees what attr holds; call it after the start.
func (g *Group) Enter(attr *syscall.SysProcAttr) (func(), error) {
	for _, dir := range g.v1 {
		if err := write(dir, "tasks", strconv.Itoa(unix.Gettid())); err != nil {
			return nil, fmt.Errorf("enter the control group: %w", err)
		}
	}
	if g.v2 == "" {
		return func() {}, nil
	}
	fd, err := unix.Open(g.v2, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: g.v2, Err: err}
	}
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	return func() { _ = unix.Close(fd) }, nil
}
