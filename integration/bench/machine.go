package bench

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine describes where a run took place.
type Machine struct {
	Date       string `json:"date"` // 2026-01-31
	CPUs       int    `json:"cpus"`
	CPU        string `json:"cpu"`
	Memory     int64  `json:"memory"` // bytes
	Kernel     string `json:"kernel"`
	System     string `json:"system"`
	Filesystem string `json:"filesystem"` // of the workspaces
	Go         string `json:"go"`
	Program    string `json:"program"` // version of berth
	Bubblewrap string `json:"bubblewrap"`
	// Docker and Podman are engine and client, or why there is none.
	Docker string `json:"docker"`
	Podman string `json:"podman"`
}

// describeMachine looks around. What cannot be found out says so.
func describeMachine(ctx context.Context, benches []*Bench, date string) Machine {
	b := &Bench{Dir: "."}
	engines := map[string]string{}
	for _, one := range benches {
		if one.Missing == "" {
			b = one
		}
		if one.Engine != nil {
			engines[one.Engine.Name] = one.Engine.Version
		}
	}
	m := Machine{
		Date: date, CPUs: runtime.NumCPU(), CPU: "unknown", Kernel: "unknown", System: "unknown",
		Filesystem: filesystem(b.Dir), Go: runtime.Version(),
		Program: firstLine(ctx, b.Berth, "--version"), Bubblewrap: firstLine(ctx, "bwrap", "--version"),
		Docker: cmp.Or(engines[docker], noEngine), Podman: cmp.Or(engines[podman], noEngine),
	}
	if v := value("/proc/cpuinfo", "model name", ":"); v != "" {
		m.CPU = v
	}
	if kib, err := strconv.ParseInt(strings.TrimSuffix(value("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64); err == nil {
		m.Memory = kib << 10
	}
	if v := strings.Trim(value("/etc/os-release", "PRETTY_NAME", "="), `"`); v != "" {
		m.System = v
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	}
	return m
}

// markdown writes a table without its last line, which the caller adds.
func (m Machine) markdown(b *strings.Builder) {
	b.WriteString("| Machine | |\n| --- | --- |\n")
	for _, line := range [][2]string{
		{"date", m.Date},
		{"processors", fmt.Sprintf("%d × %s", m.CPUs, m.CPU)},
		{"memory", fmt.Sprintf("%.1f GiB", float64(m.Memory)/(1<<30))},
		{"kernel", m.Kernel},
		{"system", m.System},
		{"file system of the workspaces", m.Filesystem},
		{"Go", m.Go},
		{"berth", m.Program},
		{"bubblewrap", m.Bubblewrap},
		{docker, m.Docker},
		{podman, m.Podman},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", line[0], cell(line[1]))
	}
}

// value returns what follows key and separator on the first line of the file that has them.
func value(file, key, sep string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), sep); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// firstLine is the first line that a program prints.
func firstLine(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, cmp.Or(program, "false"), args...).Output()
	if err != nil {
		return "unknown: " + err.Error()
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// filesystem names the type of file system that dir is on.
func filesystem(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "unknown: " + err.Error()
	}
	known := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.TMPFS_MAGIC: "tmpfs", unix.XFS_SUPER_MAGIC: "xfs",
		unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", 0x2fc12fc1: "zfs",
	}
	return cmp.Or(known[int64(s.Type)], fmt.Sprintf("type %#x", s.Type))
}

// loadAverage is the load over one minute, -1 where it cannot be told.
func loadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}
