package byssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/workberth/workberth/internal/osthread"
	"github.com/workberth/workberth/internal/tail"
)

// maxSaid is how much of the end of ssh's messages is kept, in bytes.
const maxSaid = 2 << 10

// closeWait is how long ssh may take to end when its connection is closed, before it is told to.
const closeWait = 2 * time.Second

// Error is an ssh program that has ended before it should.
type Error struct {
	Host string
	// Code is its exit status; 255 where ssh itself failed, else that of the command there.
	Code int
	// Said is the end of what it wrote to its error output.
	Said string
}

// Error tells host, reason and what ssh said.
func (e *Error) Error() string {
	text := fmt.Sprintf("ssh to %s ended with exit code %d", e.Host, e.Code)
	if e.Said != "" {
		text += fmt.Sprintf(": %q", e.Said)
	}
	return text
}

// program is an ssh that runs.
type program struct {
	host  string
	cmd   *exec.Cmd
	said  tail.Buffer
	ended chan struct{} // closed when it has ended
}

// start starts ssh. It ends with this process.
func (h Host) start(getenv func(string) string, stdin, stdout *os.File, args []string) (*program, error) {
	path, err := LookPath("ssh", getenv("PATH"))
	if err != nil {
		return nil, fmt.Errorf("the program ssh is in no directory of PATH: %w", err)
	}
	p := &program{host: h.Name, ended: make(chan struct{}), said: tail.Buffer{Limit: maxSaid}}
	p.cmd = exec.Command(path, args...) //nolint:noctx // it ends with Close
	if stdin != nil {
		p.cmd.Stdin = stdin
	}
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	p.cmd.Stderr = &p.said
	p.cmd.WaitDelay = closeWait // a connection that it has left to others may hold its error output
	// No signal of our terminal reaches it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error, 1)
	// The kernel ends it with the thread that has started it, so that one lives as long.
	osthread.Go(func() {
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is told by failure
		}
	})
	return p, <-started
}

// failure says how it ended, once it has.
func (p *program) failure() *Error {
	<-p.ended
	return &Error{Host: p.host, Code: p.cmd.ProcessState.ExitCode(), Said: strings.TrimSpace(p.said.String())}
}

// end ends it, at the latest after closeWait.
func (p *program) end() {
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Run runs a command there and makes a connection of its input and output. ctx is for the start alone.
// A connection that ends before anything was read tells why in an *[Error].
func (h Host) Run(ctx context.Context, getenv func(string) string, command ...string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	p, err := h.start(getenv, inR, outW, h.arguments(nil, command...))
	err = errors.Join(err, inR.Close(), outW.Close())
	if err != nil {
		return nil, errors.Join(err, inW.Close(), outR.Close())
	}
	return &conn{program: p, in: inW, out: outR, address: address(h.Name)}, nil
}

// conn is a command's input and output.
type conn struct {
	*program
	in, out *os.File
	address address
	close   sync.Once
}

type address string

func (address) Network() string  { return "ssh" }
func (a address) String() string { return string(a) }

// Read reads the command's output. Its end is told with the reason when the command has failed.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if n > 0 || err == nil || errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.ended:
		if f := c.failure(); f.Code != 0 {
			return 0, &net.OpError{Op: "read", Net: "ssh", Addr: c.address, Err: f}
		}
	case <-timer.C:
	}
	return 0, err
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = &net.OpError{Op: "write", Net: "ssh", Addr: c.address, Err: err}
	}
	return n, err
}

// CloseWrite ends the command's input.
func (c *conn) CloseWrite() error { return c.in.Close() }

// Close ends the command.
func (c *conn) Close() error {
	c.close.Do(func() {
		_ = c.in.Close() // CloseWrite may have been before
		_ = c.out.Close()
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		go c.end()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr                { return c.address }
func (c *conn) RemoteAddr() net.Addr               { return c.address }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.out.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.in.SetWriteDeadline(t) }
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Output runs a command there to its end and gives what it writes, of which at most 64 KiB.
func (h Host) Output(ctx context.Context, getenv func(string) string, command ...string) (string, error) {
	c, err := h.Run(ctx, getenv, command...)
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	var out []byte
	for buf := make([]byte, 4<<10); ; {
		n, err := c.Read(buf)
		if out = append(out, buf[:n]...); len(out) > 64<<10 {
			return "", errors.New("it writes too much")
		}
		if err != nil {
			var failed *Error
			if ctx.Err() != nil {
				return "", ctx.Err()
			} else if errors.As(err, &failed) {
				return "", failed
			}
			return string(out), nil
		}
	}
}

// LookPath finds a program in the absolute directories of a search path.
func LookPath(name, searchPath string) (string, error) {
	for _, dir := range filepath.SplitList(searchPath) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
