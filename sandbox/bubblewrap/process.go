package bubblewrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/cgroup"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/osthread"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// maxStderr is how much of the end of bwrap's messages is kept, in bytes.
const maxStderr = 4 << 10

// maxLine is how much of its last message is told, in bytes.
const maxLine = 300

var _ keeper.Runtime = (*process)(nil)

// process is a running bwrap with everything in its namespaces.
type process struct {
	ref    sandbox.ProcessRef
	group  *cgroup.Group // nil without limits by groups
	stderr tail.Buffer
	info   *os.File      // what bwrap tells of its child, read by adopt
	done   chan struct{} // closed when it is over, with everything in its namespaces

	// state and waitErr are set before done is closed.
	state   *os.ProcessState
	waitErr error

	mu sync.Mutex
	// first is process 1 of the namespace, zero until it is known.
	first sandbox.ProcessRef
}

// launch starts bwrap and returns it with this side of the connection to the
// helper. bwrap's parent is a thread that lives as long as it: --die-with-parent
// follows the thread, not the process.
func launch(bwrap string, c *command, a account, group *cgroup.Group) (*process, net.Conn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	// Not a pipe: bwrap would die of writing into one when we have died, and leave its
	// child waiting for it for ever.
	info, err := memFile("info", nil)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	rt := &process{group: group, stderr: tail.Buffer{Limit: maxStderr}, info: info, done: make(chan struct{})}
	args := append([]string{"--info-fd", strconv.Itoa(firstFile + len(c.files))}, c.args...)
	cmd := exec.Command(bwrap, args...)
	// Nothing of our environment reaches bwrap or what it starts.
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, &rt.stderr
	cmd.ExtraFiles = append(slices.Clone(c.files), info)
	cmd.WaitDelay = time.Second // for a stderr that somebody inside holds
	// A session of its own: no signal of our terminal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credentialOf(a)}

	started := make(chan error, 1)
	osthread.Go(func() {
		err := rt.start(cmd)
		started <- err
		if err == nil {
			rt.wait(cmd)
		}
	})
	if err := <-started; err != nil {
		return nil, nil, errors.Join(err, ours.Close(), info.Close())
	}
	return rt, ours, nil
}

// start runs on the thread that stays.
func (rt *process) start(cmd *exec.Cmd) error {
	if rt.group != nil {
		release, err := rt.group.Enter(cmd.SysProcAttr)
		if err != nil {
			return err
		}
		defer release()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ref, err := sandbox.RefOf(cmd.Process.Pid)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return err
	}
	rt.ref = ref
	return nil
}

// adopt learns which process of this machine is process 1 of the namespace. It is
// called once, when the helper has spoken: bwrap tells before it lets the helper
// start.
func (rt *process) adopt() error {
	defer rt.info.Close()
	var told struct {
		ChildPid int `json:"child-pid"`
	}
	if err := json.NewDecoder(io.NewSectionReader(rt.info, 0, 4096)).Decode(&told); err != nil {
		return fmt.Errorf("bwrap does not tell which process it has started: %w", err)
	}
	first, err := sandbox.RefOf(told.ChildPid)
	if err != nil {
		return fmt.Errorf("the sandbox has ended: %w", err)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.first = first
	return nil
}

// processOne is process 1 of the namespace; zero when it is not known.
func (rt *process) processOne() sandbox.ProcessRef {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.first
}

// wait waits for the end of bwrap and of everything in the namespaces. Process 1
// dies with bwrap, however that ends, and is over only after all others: the kernel
// sees to both. A bwrap that was killed itself does not wait for it, so we do.
func (rt *process) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		rt.waitErr = err
	}
	rt.state = cmd.ProcessState
	if first := rt.processOne(); !first.IsZero() {
		ctx, cancel := context.WithTimeout(context.Background(), endBound)
		defer cancel()
		if err := first.Kill(ctx); err != nil {
			rt.waitErr = errors.Join(rt.waitErr, err)
		}
	}
	_ = rt.info.Close()
	close(rt.done)
}

// Done is closed when bwrap and everything in its namespaces have ended.
func (rt *process) Done() <-chan struct{} { return rt.done }

// Kill ends bwrap and with it everything inside, and returns when that is so.
func (rt *process) Kill(ctx context.Context) error {
	select {
	case <-rt.done:
		return nil
	default:
	}
	// Process 1 first: bwrap then waits for it and tells how it ended.
	if err := rt.processOne().Kill(ctx); err != nil {
		return err
	}
	if err := rt.ref.Kill(ctx); err != nil {
		return err
	}
	select {
	case <-rt.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("bwrap (%s) does not end: %w", rt.ref, ctx.Err())
	}
}

// Clean reports whether the helper ended by itself and without complaint.
func (rt *process) Clean() bool {
	select {
	case <-rt.done:
		return rt.state != nil && rt.state.Success()
	default:
		return false
	}
}

// TerminateAfter answers for processes of a sandbox that has ended: none is left,
// since the kernel has ended the process namespace.
func (rt *process) TerminateAfter(context.Context, string, time.Duration) (sandbox.TerminateResult, error) {
	select {
	case <-rt.done:
		return sandbox.TerminateResult{Outcome: sandbox.TerminationGone}, nil
	default:
		return sandbox.TerminateResult{Outcome: sandbox.TerminationUnknown}, fmt.Errorf("bwrap (%s) could not be ended", rt.ref)
	}
}

// Diagnose says in one line how bwrap ended.
func (rt *process) Diagnose() string {
	select {
	case <-rt.done:
	default:
		return "bwrap is still running"
	}
	var how string
	switch {
	case rt.waitErr != nil:
		how = fmt.Sprintf("waiting for bwrap failed: %v", rt.waitErr)
	case rt.state == nil:
		how = "bwrap ended in an unknown way"
	default:
		how = describe(rt.state)
	}
	if n := rt.group.OOMKills(); n > 0 {
		how += fmt.Sprintf("; the memory limit was reached, the kernel ended %d processes", n)
	}
	if said := rt.stderr.Line(maxLine); said != "" {
		how += fmt.Sprintf("; last message: %s", said)
	}
	return how
}

// describe tells how a process ended. bwrap passes on how the helper ended, a
// signal as 128 and its number.
func describe(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return state.String()
	case status.Signaled():
		return fmt.Sprintf("bwrap was killed by signal %d (%s)", status.Signal(), unix.SignalName(status.Signal()))
	case status.ExitStatus() > 128 && status.ExitStatus() < 128+65:
		sig := unix.Signal(status.ExitStatus() - 128)
		return fmt.Sprintf("the helper was killed by signal %d (%s)", sig, unix.SignalName(sig))
	}
	return fmt.Sprintf("the helper ended with exit status %d", status.ExitStatus())
}

// socketPair makes the connection: our end, and the file for the other side.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "helper"), os.NewFile(uintptr(fds[1]), "helper")
	conn, err := net.FileConn(ours)
	_ = ours.Close() // the connection has a descriptor of its own
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}
