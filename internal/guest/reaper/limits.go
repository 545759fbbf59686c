//go:build linux

package reaper

import (
	"encoding/binary"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/guest/wire"
)

// A limit has to be in force when the command begins. Some may hold for its reaper
// as well, which then passes them on: it writes no files, needs no further process
// or thread once it is running, and a few descriptors. It cannot raise them again,
// so from then on it serves commands with the same limits only.
//
// The others must not hold for the reaper: on memory or processor time they would
// end it. The Go runtime runs no code between fork and exec, so a command with such
// limits is started by way of one more exec: this program in a role that sets them
// on itself and becomes the command. It costs some milliseconds, only where it is
// needed.

// fewFiles is how many descriptors a reaper can do with.
const fewFiles = 64

// divide tells which limits a reaper takes upon itself, and which need the shim.
func divide(l proc.Limits) (shared, own proc.Limits) {
	shared.FileSize, shared.Processes = l.FileSize, l.Processes
	own.AddressSpace, own.CPUSeconds = l.AddressSpace, l.CPUSeconds
	if l.OpenFiles >= fewFiles {
		shared.OpenFiles = l.OpenFiles
	} else {
		own.OpenFiles = l.OpenFiles
	}
	return shared, own
}

// setLimits lowers the limits of this process and of what it starts.
func setLimits(l proc.Limits) error {
	for _, r := range rlimits(l) {
		if err := lowerLimit(r); err != nil {
			return err
		}
	}
	return nil
}

// rlimits lists the limits that are set, as resource and value.
func rlimits(l proc.Limits) (list []rlimit) {
	for _, r := range []rlimit{
		{unix.RLIMIT_NOFILE, l.OpenFiles},
		{unix.RLIMIT_FSIZE, l.FileSize},
		{unix.RLIMIT_NPROC, l.Processes},
		{unix.RLIMIT_CPU, l.CPUSeconds},
		{unix.RLIMIT_AS, l.AddressSpace}, // last: little works after it
	} {
		if r.value != 0 {
			list = append(list, r)
		}
	}
	return list
}

type rlimit struct {
	resource int
	value    uint64
}

// The shim's descriptors.
const (
	shimOrder  = 3 // where it reads what to become
	shimAnswer = 4 // where it writes an errno if that failed; closed by exec
)

// startLimited starts a command by way of the shim.
func startLimited(path string, spec proc.Spec, attr *syscall.ProcAttr) (int, *startFailure) {
	internal := func(err error) (int, *startFailure) {
		f := execFailure(path, err)
		if f.reason != proc.LimitReached {
			f.reason = proc.Internal
		}
		return 0, f
	}
	spec.Argv = append([]string{path}, spec.Argv...)
	order, err := memFile("order", startOrder{spec: spec}.append(nil))
	if err != nil {
		return internal(err)
	}
	defer unix.Close(order)
	var answer [2]int
	if err := unix.Pipe2(answer[:], unix.O_CLOEXEC); err != nil {
		return internal(err)
	}
	defer unix.Close(answer[0])

	attr.Files = append(attr.Files, uintptr(order), uintptr(answer[1]))
	attr.Env = roleEnv()
	pid, err := forkExec(selfExe, []string{programName, roleLimit}, attr)
	_ = unix.Close(answer[1])
	if err != nil {
		return internal(err)
	}
	var b [8]byte
	n, err := read(answer[0], b[:])
	if err == nil && n == 0 {
		return pid, nil // exec closed it
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if n < len(b) {
		return internal(unix.ECHILD) // the shim died
	}
	return 0, execFailure(path, syscall.Errno(binary.BigEndian.Uint64(b[:])))
}

// memFile returns a descriptor from which content can be read.
func memFile(name string, content []byte) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	f := content
	for len(f) > 0 {
		n, err := unix.Write(fd, f)
		if err != nil && err != unix.EINTR {
			_ = unix.Close(fd)
			return -1, err
		}
		f = f[max(n, 0):]
	}
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// limitMain is the role of the shim.
func limitMain() int {
	if err := closeOnExec(shimOrder); err != nil {
		return exitFailed
	}
	errno := becomeLimited()
	b := binary.BigEndian.AppendUint64(nil, uint64(errno))
	_, _ = unix.Write(shimAnswer, b) // a reaper that is gone ends this process too
	return exitFailed
}

// becomeLimited turns this process into the command. It returns only if that
// fails. Everything is allocated before the limits are set, since one on memory
// lets no Go program allocate any more.
func becomeLimited() syscall.Errno {
	payload, err := readOrder()
	if err != nil {
		return errnoOf(err)
	}
	order, err := decodeStart(payload)
	if err != nil || len(order.spec.Argv) < 2 {
		return unix.EBADMSG
	}
	path, err := syscall.BytePtrFromString(order.spec.Argv[0])
	if err != nil {
		return unix.EINVAL
	}
	argv, err := syscall.SlicePtrFromStrings(order.spec.Argv[1:])
	if err != nil {
		return unix.EINVAL
	}
	envv, err := syscall.SlicePtrFromStrings(order.spec.Env)
	if err != nil {
		return unix.EINVAL
	}
	restoreOpenFiles()
	if err := setLimits(order.spec.Limits); err != nil {
		return errnoOf(err)
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE,
		uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])))
	return errno
}

// restoreOpenFiles takes back that the Go runtime raised the soft limit on open
// files for itself. Package syscall keeps the old value to itself and restores it
// in Exec, also in one that fails because of its empty name.
func restoreOpenFiles() { _ = syscall.Exec("", nil, nil) }

func readOrder() ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(shimOrder, &st); err != nil {
		return nil, err
	}
	if st.Size > maxSpec+wire.MaxPath {
		return nil, unix.E2BIG
	}
	b := make([]byte, st.Size)
	for got := 0; got < len(b); {
		n, err := read(shimOrder, b[got:])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, unix.EBADMSG
		}
		got += n
	}
	return b, nil
}

// lowerLimit sets soft and hard limit. Where the limit in force is lower already
// it stays.
func lowerLimit(l rlimit) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(l.resource, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	n := min(l.value, now.Max)
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: n, Max: n}))
}
