package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/client"
	"github.com/workberth/workberth/internal/guest/proc"
	"github.com/workberth/workberth/internal/keeper"
	"github.com/workberth/workberth/internal/version"
	"github.com/workberth/workberth/sandbox"
)

// How long the helper may take.
const (
	handshakeBound = 10 * time.Second // to say hello
	killBound      = 10 * time.Second // to end when it is killed
)

// start starts the helper of a new generation, in a session of its own.
func (b *Backend) start(ctx context.Context, r keeper.Birth) (*keeper.Life, error) {
	helper, err := b.helper()
	if err != nil {
		return nil, &sandbox.Problem{What: "the guest helper", Rule: err.Error(), Remedy: "see: berth doctor", Err: errors.Join(sandbox.ErrUnavailable, err)}
	}
	spec := r.Resolved.Spec
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &process{tag: r.Tag, done: make(chan struct{})}
	cmd := exec.Command(helper, "serve", "--tag="+r.Tag, "--mount="+string(fsbridge.MountWorkspace)+":rw:"+spec.Workspace)
	cmd.Dir = "/"
	cmd.Env = []string{} // commands get theirs by name
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, &p.stderr
	cmd.WaitDelay = time.Second
	// A session of its own: no signal of our terminal reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.start(cmd); err != nil {
		return nil, errors.Join(&sandbox.Problem{
			What: "the guest helper cannot be started", Rule: err.Error(), Remedy: "see: berth doctor", Err: errors.Join(sandbox.ErrUnavailable, err),
		}, ours.Close())
	}
	conn, err := client.New(ctx, ours, client.Options{SkipLimit: -1, HandshakeTimeout: handshakeBound, Build: version.Version(), Logger: b.log})
	if err != nil {
		killing, cancel := context.WithTimeout(context.WithoutCancel(ctx), killBound)
		defer cancel()
		return nil, errors.Join(greetingProblem(err, p), ours.Close(), p.Kill(killing))
	}
	return &keeper.Life{
		Conn: conn, Runtime: p, Refs: []sandbox.ProcessRef{p.ref},
		Mounts:  fsbridge.MountTable{{Path: spec.Workspace, Kind: fsbridge.MountWorkspace, HostPath: spec.Workspace}},
		Workdir: workdir(spec),
		Facts:   map[string]string{"pid": strconv.Itoa(p.ref.PID), "confinement": "none"},
		Env:     Environment(b.opts.Environ()),
		Limits:  proc.Limits{OpenFiles: uint64(spec.Config.Limits.OpenFiles), FileSize: uint64(spec.Config.Limits.FileSizeBytes)},
	}, nil
}

// workdir is where commands run by default.
func workdir(spec sandbox.Spec) string {
	switch d := spec.Config.Workdir; {
	case d == "":
		return spec.Workspace
	case d[0] == '/':
		return d
	default:
		return spec.Workspace + "/" + d
	}
}

// greetingProblem explains a helper that did not greet.
func greetingProblem(err error, p *process) error {
	var v *client.VersionError
	if errors.As(err, &v) {
		return &sandbox.Problem{
			What: "the guest helper does not fit this program", Rule: v.Error(),
			Remedy: "install both from the same release", Err: errors.Join(sandbox.ErrUnavailable, err),
		}
	}
	return &sandbox.Problem{
		What: "the guest helper does not answer", Rule: fmt.Sprintf("%v (%s)", err, p.Diagnose()),
		Remedy: "see: berth doctor", Err: errors.Join(sandbox.ErrUnavailable, err),
	}
}

// socketPair makes the connection: our end, and the file for the helper.
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
