package sshtest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one line of the machine's process table.
type process struct {
	pid, parent int
	name        string // the program's name, at most 15 bytes
	state       byte   // as proc(5) writes it: Z is a zombie
}

// processes reads the process table. Processes that end meanwhile are left out.
func processes() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []process
	for _, dir := range dirs {
		data, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state parent ...: the name may hold spaces and parentheses.
		open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
		if open < 0 || end < open {
			continue
		}
		rest := strings.Fields(string(data[end+1:]))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || len(rest) < 2 {
			continue
		}
		parent, err := strconv.Atoi(rest[1])
		if err != nil {
			continue
		}
		all = append(all, process{pid: pid, parent: parent, name: string(data[open+1 : end]), state: rest[0][0]})
	}
	return all
}

// below returns the processes that descend from pid, parents before children, without zombies.
func below(pid int) []process {
	all := processes()
	var found []process
	for parents := []int{pid}; len(parents) > 0; parents = parents[1:] {
		for _, p := range all {
			if p.parent == parents[0] && p.state != 'Z' {
				found = append(found, p)
				parents = append(parents, p.pid)
			}
		}
	}
	return found
}

// isServers reports whether a process is part of an SSH server, and no command that it runs.
func isServers(p process) bool {
	return slices.Contains([]string{"sshd", "sshd-session", "sshd-auth", "dropbear", "sftp-server"}, p.name)
}

// signal sends a signal to processes. Those that have ended are no fault.
func signal(sig syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}
