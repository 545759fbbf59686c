//go:build linux

package reaper

import (
	"bytes"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// procStat is what /proc/PID/stat says about a process.
type procStat struct {
	name    string // chosen by the process, at most 15 bytes
	ppid    int
	state   byte
	threads int
}

// dead reports whether nothing of the process runs any more. The state is that of
// its first thread, which others can survive.
func (s procStat) dead() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

var errMalformed = errors.New("malformed file in /proc")

// readStat reads /proc/PID/stat.
func readStat(pid int) (procStat, error) {
	b, err := readSmall("/proc/"+strconv.Itoa(pid)+"/stat", 1024)
	if err != nil {
		return procStat{}, err
	}
	return parseStat(b)
}

// The places of what is used of /proc/PID/stat, counted from the state.
const (
	statState   = 0
	statParent  = 1
	statThreads = 17
)

// parseStat parses "pid (name) state ppid ...". The name may contain anything, so
// the last parenthesis counts.
func parseStat(b []byte) (procStat, error) {
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if begin < 0 || end < begin {
		return procStat{}, errMalformed
	}
	f := bytes.Fields(b[end+1:])
	if len(f) <= statThreads || len(f[statState]) != 1 {
		return procStat{}, errMalformed
	}
	ppid, err := strconv.Atoi(string(f[statParent]))
	if err != nil {
		return procStat{}, errMalformed
	}
	threads, err := strconv.Atoi(string(f[statThreads]))
	if err != nil {
		return procStat{}, errMalformed
	}
	return procStat{name: string(b[begin+1 : end]), ppid: ppid, state: f[statState][0], threads: threads}, nil
}

// ownedBy reports whether a process is a user's: what belongs to its directory in
// /proc is the process's effective user, or root where it may not be looked into.
func ownedBy(pid, uid int) bool {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid), &st)
	return err == nil && int(st.Uid) == uid
}

// pids lists all processes.
func pids() ([]int, error) { return numericNames("/proc") }

// threads lists the threads of a process.
func threads(pid int) ([]int, error) {
	return numericNames("/proc/" + strconv.Itoa(pid) + "/task")
}

// childrenOf lists the children that one thread of a process has, as the kernel
// lists them: a child may be missing while others end at the same moment.
// unix.ENOENT means that the process is gone or the kernel keeps no such list.
func childrenOf(pid, tid int) ([]int, error) {
	b, err := readAll("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/children")
	if err != nil {
		return nil, err
	}
	var list []int
	for f := range bytes.FieldsSeq(b) {
		pid, err := strconv.Atoi(string(f))
		if err != nil {
			return nil, errMalformed
		}
		list = append(list, pid)
	}
	return list, nil
}

// numericNames lists the entries of a directory that are numbers.
func numericNames(dir string) ([]int, error) {
	fd, err := rawOpen(dir, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer rawClose(fd)
	var list []int
	buf := make([]byte, 8<<10)
	var names []string
	for {
		n, err := rawReadDirent(fd, buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return list, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if n, err := strconv.Atoi(name); err == nil && n > 0 {
				list = append(list, n)
			}
		}
	}
}

// readSmall reads the beginning of a file of /proc, at most size bytes.
func readSmall(path string, size int) ([]byte, error) {
	fd, err := rawOpen(path, 0)
	if err != nil {
		return nil, err
	}
	defer rawClose(fd)
	b := make([]byte, size)
	n, err := rawRead(fd, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// readAll reads a whole file of /proc.
func readAll(path string) ([]byte, error) { return readWhole(path, rawRead) }

// readMemory reads a file of /proc that is the memory of another process: the read
// can wait for that process.
func readMemory(path string) ([]byte, error) { return readWhole(path, read) }

func readWhole(path string, read func(fd int, b []byte) (int, error)) ([]byte, error) {
	fd, err := rawOpen(path, 0)
	if err != nil {
		return nil, err
	}
	defer rawClose(fd)
	b := make([]byte, 0, 1024)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := read(fd, b[len(b):cap(b)])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return b, nil
		}
		b = b[:len(b)+n]
	}
}

// open and read are the ordinary system calls, repeated when interrupted.
func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func read(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		if err != unix.EINTR {
			return n, err
		}
	}
}
