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

// A limit has to be in force when the command begins, and must not hold for its
// reaper: one on memory or processor time would end it, one on processes or
// descriptors would keep it from ending the tree. The Go runtime runs no code
// between fork and exec, so a command with limits is started by way of one more
// exec: this program in a role that sets the limits on itself and becomes the
// command. It costs about a millisecond, only where limits are asked for.

// needsShim reports whether any limit but that on core files is set.
func needsShim(l proc.Limits) bool {
	l.CoreFileBytes = 0
	return l != proc.Limits{}
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
	for _, l := range rlimits(order.spec.Limits) {
		if err := lowerLimit(l); err != nil {
			return errnoOf(err)
		}
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
