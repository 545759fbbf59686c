package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is a process of this machine, as its kernel tells: inside of sandboxes too.
type process struct {
	pid, parent int
	comm        string
}

// processes lists what runs now.
func processes() ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		if p, ok := parseStat(pid, string(stat)); ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// parseStat reads "pid (comm) state ppid ..."; comm may hold anything, brackets too.
func parseStat(pid int, stat string) (process, bool) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid: pid, parent: parent, comm: stat[open+1 : end]}, err == nil
}

// below returns the processes that descend from one of the roots.
func below(all []process, roots ...int) []process {
	children := map[int][]process{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var out []process
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			out = append(out, p)
			queue = append(queue, p.pid)
		}
	}
	return out
}

// running counts the processes of this machine with exactly this command line. A zombie has none.
func running(argv ...string) (int, error) {
	want := []byte(strings.Join(argv, "\x00") + "\x00")
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, dir := range dirs {
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && bytes.Equal(line, want) {
			n++
		}
	}
	return n, nil
}

// memory is what a process occupies, in bytes.
type memory struct {
	// rss counts every page it has mapped, pss shares those that others have mapped too.
	rss, pss float64
}

// memoryOf looks at a process. Where the kernel does not tell the share, as of a process of
// another user, it counts everything.
func memoryOf(pid int) (memory, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	rss, err := resident(pid)
	if err != nil {
		return memory{}, err
	}
	pss, err := kibibytes(filepath.Join(dir, "smaps_rollup"), "Pss")
	if err != nil {
		pss = rss
	}
	return memory{rss: rss, pss: pss}, nil
}

// resident is what a process has in memory now, in bytes.
func resident(pid int) (float64, error) {
	return kibibytes(filepath.Join("/proc", strconv.Itoa(pid), "status"), "VmRSS")
}

// residentPeak is the most that it has had.
func residentPeak(pid string) (float64, error) {
	return kibibytes(filepath.Join("/proc", pid, "status"), "VmHWM")
}

// kibibytes reads a line "name:   123 kB" and returns bytes.
func kibibytes(file, name string) (float64, error) {
	text := value(file, name, ":")
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, file, err)
	}
	return n * 1024, nil
}

// programs lists the processes that run the program file.
func programs(path string) ([]int, error) {
	want, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range all {
		if got, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.pid)); err == nil && os.SameFile(got, want) {
			pids = append(pids, p.pid)
		}
	}
	return pids, nil
}
