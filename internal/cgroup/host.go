package cgroup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Controller is a resource that the kernel can bound.
type Controller string

// The controllers this package uses.
const (
	Pids   Controller = "pids"
	Memory Controller = "memory"
	CPU    Controller = "cpu"
)

// controllers in a fixed order.
func controllers() []Controller { return []Controller{Pids, Memory, CPU} }

// Host tells where groups can be made. It is an immutable value; safe for
// concurrent use.
type Host struct {
	v1 map[Controller]string // own group of each controller, a directory
	v2 string                // own group in the unified hierarchy, "" without one
	// v2top is the mount point of the unified hierarchy: the search ends there.
	v2top string
}

// Find reads from /proc where this process stands.
func Find() (*Host, error) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("look for control groups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("look for control groups: %w", err)
	}
	return find(membership, mounts), nil
}

// mountPoint is where a hierarchy, or a part of it, can be seen.
type mountPoint struct {
	dir, root   string
	v2          bool
	controllers []string
}

// find combines the content of /proc/self/cgroup and /proc/self/mountinfo.
func find(membership, mountinfo []byte) *Host {
	mounts := cgroupMounts(mountinfo)
	h := &Host{v1: map[Controller]string{}}
	for line := range strings.Lines(string(membership)) {
		id, rest, ok1 := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		names, own, ok2 := strings.Cut(rest, ":")
		if !ok1 || !ok2 {
			continue
		}
		for _, m := range mounts {
			if m.v2 {
				if id == "0" && names == "" {
					if dir, ok := m.locate(own); ok && h.v2 == "" {
						h.v2, h.v2top = dir, m.dir
					}
				}
				continue
			}
			for _, c := range controllers() {
				if !slices.Contains(strings.Split(names, ","), string(c)) || !slices.Contains(m.controllers, string(c)) {
					continue
				}
				if dir, ok := m.locate(own); ok && h.v1[c] == "" {
					h.v1[c] = dir
				}
			}
		}
	}
	return h
}

// cgroupMounts picks the mounts of control groups out of a mountinfo.
func cgroupMounts(mountinfo []byte) []mountPoint {
	var out []mountPoint
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		// ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(tail) < 3 {
			continue
		}
		m := mountPoint{root: unescape(fields[3]), dir: unescape(fields[4])}
		switch tail[0] {
		case "cgroup2":
			m.v2 = true
		case "cgroup":
			m.controllers = strings.Split(tail[2], ",")
		default:
			continue
		}
		out = append(out, m)
	}
	return out
}

// locate gives the directory of a group, where the mount shows it.
func (m mountPoint) locate(group string) (string, bool) {
	if m.root == "/" {
		return path.Join(m.dir, group), true
	}
	if group == m.root || strings.HasPrefix(group, m.root+"/") {
		return path.Join(m.dir, strings.TrimPrefix(group, m.root)), true
	}
	return "", false
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Place says where and how a controller can be used.
type Place struct {
	// Dir is the directory below which groups are made.
	Dir string
	// Version of the hierarchy, 1 or 2.
	Version int
}

// Places tells, for each controller that can be used by this process now, where.
// The second result says for the others why not.
func (h *Host) Places() (map[Controller]Place, map[Controller]error) {
	places, missing := map[Controller]Place{}, map[Controller]error{}
	for _, c := range controllers() {
		if p, err := h.place(c); err != nil {
			missing[c] = err
		} else {
			places[c] = p
		}
	}
	return places, missing
}

// place looks for one controller.
func (h *Host) place(c Controller) (Place, error) {
	if dir := h.v1[c]; dir != "" {
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return Place{}, &os.PathError{Op: "make a group in", Path: dir, Err: err}
		}
		return Place{Dir: dir, Version: 1}, nil
	}
	if h.v2 == "" {
		return Place{}, fmt.Errorf("no hierarchy of control groups has the controller %q", c)
	}
	dir, err := h.hands([]Controller{c})
	if err != nil {
		return Place{}, err
	}
	return Place{Dir: dir, Version: 2}, nil
}

// hands finds the nearest group, from our own upwards, that can hand all the
// controllers down and in which this process may make groups.
func (h *Host) hands(cs []Controller) (string, error) {
	var first error
	for dir := h.v2; ; dir = filepath.Dir(dir) {
		err := handsDown(dir, cs)
		if err == nil {
			return dir, nil
		}
		if first == nil {
			first = err
		}
		if dir == h.v2top || len(dir) <= len(h.v2top) {
			return "", first
		}
	}
}

// handsDown reports whether groups below dir get the controllers. Only a group
// without processes of its own can be told to hand down more than it does, and the
// kernel refuses it for others.
func handsDown(dir string, cs []Controller) error {
	// Moving a process takes the right to write here too: it is the common
	// ancestor of where the process is and where it goes.
	for _, p := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if err := unix.Access(p, unix.W_OK); err != nil {
			return &os.PathError{Op: "make a group in", Path: dir, Err: err}
		}
	}
	available, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	down, err := words(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, c := range cs {
		if slices.Contains(down, string(c)) {
			continue
		}
		if !slices.Contains(available, string(c)) {
			return fmt.Errorf("the group %s has no controller %q", dir, c)
		}
		if err := write(dir, "cgroup.subtree_control", "+"+string(c)); err != nil {
			return fmt.Errorf("the group %s does not hand the controller %q down: %w", dir, c, err)
		}
	}
	return nil
}

// words reads a file of words.
func words(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(data)), nil
}

// write writes one value into a control file.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
