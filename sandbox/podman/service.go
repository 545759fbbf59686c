package podman

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/container"
	"github.com/workberth/workberth/internal/container/byssh"
	"github.com/workberth/workberth/internal/container/libpod"
	"github.com/workberth/workberth/internal/osthread"
	"github.com/workberth/workberth/internal/tail"
	"github.com/workberth/workberth/sandbox"
)

// maxSaid is how much of the end of a service's messages is kept, in bytes.
const maxSaid = 4 << 10

// serviceBound is how long a service may take to answer after its start.
const serviceBound = 20 * time.Second

// service is a Podman service of our own: it ends with the client. Containers do not need it.
type service struct {
	*libpod.Client
	dir   string
	cmd   *exec.Cmd
	ended chan struct{}
	said  *tail.Buffer
	close sync.Once
}

// startService starts a service on a socket in a private directory.
func startService(ctx context.Context, opts Options, log *slog.Logger) (container.Engine, error) {
	unavailable := func(rule string, err error) error {
		return &sandbox.Problem{
			What: "no podman engine answers", Rule: rule, Remedy: "install podman, or name a service in CONTAINER_HOST",
			Err: errors.Join(sandbox.ErrUnavailable, err),
		}
	}
	program, err := byssh.LookPath("podman", opts.Getenv("PATH"))
	if err != nil {
		return nil, unavailable("no service listens, and the program podman is in no directory of PATH", err)
	}
	dir, err := os.MkdirTemp("", "berth-podman-")
	if err != nil {
		return nil, unavailable(err.Error(), err)
	}
	address := "unix://" + filepath.Join(dir, "s")
	s := &service{dir: dir, ended: make(chan struct{}), said: &tail.Buffer{Limit: maxSaid}}
	s.cmd = exec.Command(program, "system", "service", "--time=0", address) //nolint:noctx // it ends with Close
	s.cmd.Stderr = s.said
	// No signal of our terminal reaches it, and it ends when we do.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.start(); err != nil {
		return nil, errors.Join(unavailable(err.Error(), err), os.RemoveAll(dir))
	}
	s.Client, err = open(libpod.Options{Address: address, Bound: !mayRaiseLimits(), Logger: log})
	if err == nil {
		err = s.await(ctx)
	}
	if err != nil {
		return nil, errors.Join(unavailable("a service was started and does not answer: "+err.Error(), err), s.Close())
	}
	log.Info("started a podman service, as none was listening", "address", address)
	return s, nil
}

// start starts the program and waits for it in the background, on a thread that lives as long: the
// kernel ends the program with the thread that has started it.
func (s *service) start() error {
	started := make(chan error, 1)
	osthread.Go(func() {
		defer close(s.ended)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // how it ended is in what it said
		}
	})
	return <-started
}

// await waits until the service answers.
func (s *service) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serviceBound)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.Ping(ctx)
		if !errors.Is(err, container.ErrUnreachable) {
			return err
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return fmt.Errorf("it ended: %s", cmp.Or(s.said.Line(0), `""`))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// mayRaiseLimits reports whether this process, and so a service of ours, may raise limits above its own.
// An ordinary user's Podman knows that it may not.
func mayRaiseLimits() bool {
	var header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if os.Geteuid() != 0 || unix.Capget(&header, &data[0]) != nil {
		return true
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// Ended reports that the service is over.
func (s *service) Ended() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Close ends the service.
func (s *service) Close() error {
	var err error
	s.close.Do(func() {
		if s.Client != nil {
			err = s.Client.Close()
		}
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		timer := time.NewTimer(5 * time.Second)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
			_ = s.cmd.Process.Kill()
			<-s.ended
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	})
	return err
}
