package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process joins a group in two steps, because the versions differ in what they can
// do. Version 2 places a new process at its birth: Place. Version 1 moves processes
// that run: AddTree. The move has to wait for the whole kernel to take notice, which
// can take milliseconds, so it is made beside whatever the new process does first; it
// must be over before the process is given anything that must not escape.

// Place makes the next process that is started with attr a member of the version 2
// part of the group from its first moment. The returned function frees what attr
// holds; call it after the start.
func (g *Group) Place(attr *syscall.SysProcAttr) (func(), error) {
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

// Add moves a process into the version 1 parts of the group. What it starts from
// then on is in the group, too. A process that has ended is no error.
func (g *Group) Add(pid int) error {
	for _, dir := range g.v1 {
		err := write(dir, "cgroup.procs", strconv.Itoa(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("move process %d into the control group: %w", pid, err)
		}
	}
	return nil
}

// AddTree moves a process and everything that descends from it. A process is moved
// before its children are looked for, so that none is missed.
func (g *Group) AddTree(pid int) error {
	if len(g.v1) == 0 {
		return nil
	}
	if err := g.Add(pid); err != nil {
		return err
	}
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := g.AddTree(c); err != nil {
			return err
		}
	}
	return nil
}

// childrenOf lists the children of a process, those of all its threads.
func childrenOf(pid int) ([]int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return searchChildren(pid)
	}
	var out []int
	for _, f := range files {
		pids, err := words(f)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range pids {
			if n, err := strconv.Atoi(p); err == nil {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// searchChildren is childrenOf for kernels that keep no list.
func searchChildren(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The name, in parentheses, may hold anything; state and parent follow it.
		_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if n, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			out = append(out, n)
		}
	}
	return out, nil
}

// gone reports that a process has ended while it was looked at.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }
