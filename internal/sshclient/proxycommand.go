package sshclient

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"
)

// dialCommand speaks to a ProxyCommand's standard input and output.
func dialCommand(_ context.Context, s Settings) (net.Conn, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+s.ProxyCommand)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &commandConn{cmd: cmd, in: in, out: out, s: s}, nil
}

// commandConn is a process that is spoken to like a connection. It has no deadlines;
// Close kills the process, which ends reads and writes.
type commandConn struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
	s   Settings

	closing sync.Once
}

func (c *commandConn) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *commandConn) Write(p []byte) (int, error) { return c.in.Write(p) }

func (c *commandConn) Close() error {
	c.closing.Do(func() {
		_ = c.in.Close()
		_ = c.cmd.Process.Kill() // it may have ended
		_ = c.cmd.Wait()         // that it was killed is no news
	})
	return nil
}

func (c *commandConn) LocalAddr() net.Addr  { return commandAddr(c.s.Address()) }
func (c *commandConn) RemoteAddr() net.Addr { return commandAddr(c.s.Address()) }

var errNoDeadline = errors.New("a ProxyCommand has no deadlines")

func (c *commandConn) SetDeadline(time.Time) error      { return errNoDeadline }
func (c *commandConn) SetReadDeadline(time.Time) error  { return errNoDeadline }
func (c *commandConn) SetWriteDeadline(time.Time) error { return errNoDeadline }

// commandAddr is the address a ProxyCommand leads to.
type commandAddr string

func (commandAddr) Network() string  { return "tcp" }
func (a commandAddr) String() string { return string(a) }
