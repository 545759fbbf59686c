package sandboxtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Cut cuts the connection of a place that has one (see [Kind.Overland]), from the far side and without
// a word. New ones are accepted.
func (p *Place) Cut() { p.cut() }

// KillHelper kills (SIGKILL) the guest helpers that work for the workspace, and with them, where the
// helper is the first process of a container, the container. It returns how many there were. Another
// user's processes are out of its reach.
func (p *Place) KillHelper() int {
	killed := 0
	for _, pid := range p.helpers() {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// helpers are the processes of the helper's program that have the workspace, or the cache it was copied
// to, to themselves.
func (p *Place) helpers() []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		exe, err := os.Readlink(d + "/exe")
		pid, convErr := strconv.Atoi(filepath.Base(d))
		if err != nil || convErr != nil || !strings.Contains(filepath.Base(exe), "guest") {
			continue
		}
		mounts, err := os.ReadFile(d + "/mountinfo")
		if err == nil && (bytes.Contains(mounts, []byte(strings.TrimPrefix(p.Root, os.TempDir())+" ")) || strings.HasPrefix(exe, filepath.Dir(p.Root)+"/")) {
			out = append(out, pid)
		}
	}
	return out
}
