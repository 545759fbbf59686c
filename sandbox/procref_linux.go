package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SelfRef identifies this process.
func SelfRef() (ProcessRef, error) { return RefOf(os.Getpid()) }

// RefOf identifies the process that has the id pid now. A process that does not
// exist is an error that matches fs.ErrNotExist.
func RefOf(pid int) (ProcessRef, error) {
	boot, err := bootID()
	if err != nil {
		return ProcessRef{}, err
	}
	start, _, err := procStat(pid)
	if err != nil {
		return ProcessRef{}, err
	}
	return ProcessRef{PID: pid, StartTime: start, BootID: boot}, nil
}

// Alive reports whether the very process that r identifies is running. A zombie
// is not. Where it cannot be told, the answer is true: nothing is taken over or
// swept on a guess.
func (r ProcessRef) Alive() bool {
	if r.PID <= 0 {
		return false
	}
	boot, err := bootID()
	if err != nil {
		return true
	}
	if boot != r.BootID {
		return false
	}
	start, state, err := procStat(r.PID)
	if errors.Is(err, fs.ErrNotExist) {
		// A /proc that hides the processes of others shows them as missing.
		return errors.Is(unix.Kill(r.PID, 0), unix.EPERM)
	}
	if err != nil {
		return true
	}
	if start != r.StartTime || state == 'X' {
		return false
	}
	// The first thread of a process that is ending can be a zombie while others still
	// work; the first process of a namespace is then waiting for all its processes.
	return state != 'Z' || threads(r.PID) > 1
}

// threads counts the threads of a process, zombies too.
func threads(pid int) int {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return 0
	}
	return len(entries)
}

// Kill sends SIGKILL to the very process that r identifies, and to no other that
// has got its id, and waits until it has ended or ctx has. A process that is
// already gone is no error.
func (r ProcessRef) Kill(ctx context.Context) error {
	if !r.Alive() {
		return nil
	}
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", r.PID, err)
	}
	defer unix.Close(fd)
	// The descriptor holds one process; now it can be compared without a race.
	if !r.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", r.PID, err)
	}
	for {
		// The descriptor becomes readable when the process ends.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for process %d: %w", r.PID, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d does not end: %w", r.PID, ctx.Err())
		}
	}
}

// bootID changes with every start of this machine.
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// procStat returns the start time and the state of a process.
func procStat(pid int) (start uint64, state byte, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, unix.ESRCH) { // it ended while it was read
			err = fs.ErrNotExist
		}
		return 0, 0, err
	}
	// The name, in parentheses, may hold anything; what counts follows the last one.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const startField = 22 - 3 // counted from the state, which is field 3
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("malformed stat of process %d", pid)
	}
	start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("malformed stat of process %d: %w", pid, err)
	}
	return start, fields[0][0], nil
}
