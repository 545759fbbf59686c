package cgroup

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter makes the next process that is started from this thread with attr a member
// of the group from its first moment, so that nothing it starts can stay outside. For
// version 1 the thread itself enters the group, so the caller is on a thread that it
// uses for nothing else (see package osthread); for version 2 the kernel places the
// new process.
//
// The returned function frees what attr holds; call it after the start.
func (g *Group) Enter(attr *syscall.SysProcAttr) (func(), error) {
	for _, dir := range g.v1 {
		// 0 is the thread that writes. For it, and for no other, the kernel need not
		// wait until every processor has taken notice, which takes milliseconds.
		if err := write(dir, "tasks", "0"); err != nil {
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
