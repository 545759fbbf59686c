package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/workberth/workberth/remoteworkspace/sshhost/hostdir"
)

func newHostStdio(a *app, h *hostFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "stdio",
		Short: "Serve one connection on standard input and output, for ssh's ProxyCommand",
		Long: `Serve one connection on standard input and output: no port, no server that stays.

  ssh -o ProxyCommand='berth host --dir D stdio' demo@sandbox

It ends with its input. Messages go to standard error. A sandbox belongs to one program at a
time: while one connection, or a server, holds a workspace, others get "in use"; let ssh share a
connection (ControlMaster), or use "serve". Keys with from= do not fit: there is no address.`,
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := h.open()
			if err != nil {
				return err
			}
			cfg, err := d.Config()
			if err != nil {
				return err
			}
			if term.IsTerminal(int(os.Stdin.Fd())) {
				return &usageError{errors.New("standard input is a terminal; this is for ssh's ProxyCommand")}
			}
			return a.serveStdio(cmd.Context(), d, cfg)
		},
	}
}

// serveStdio serves one connection and ends everything that belongs to it. C183.
func (a *app) serveStdio(ctx context.Context, d *hostdir.Dir, cfg hostdir.Config) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	host, err := a.newHostServer(d, cfg, nil)
	if err != nil {
		return err
	}
	defer host.audit.Close()
	conn, err := newStdioConn()
	if err != nil {
		return err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the connection
	defer unwatch()
	host.srv.ServeConn(conn)
	over, cancel := context.WithCancel(context.Background())
	cancel() // the connection has ended: nobody is waited for
	return host.srv.Shutdown(over)
}

// stdioConn is standard input and output as a connection.
type stdioConn struct {
	in, out *os.File
	once    sync.Once
}

// newStdioConn takes the two over, so that closing ends a read that waits.
func newStdioConn() (*stdioConn, error) {
	for _, fd := range []int{0, 1} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return nil, err
		}
	}
	return &stdioConn{in: os.NewFile(0, "standard input"), out: os.NewFile(1, "standard output")}, nil
}

func (c *stdioConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *stdioConn) Write(p []byte) (int, error) { return c.out.Write(p) }

// Close ends both directions.
func (c *stdioConn) Close() error {
	var err error
	c.once.Do(func() { err = errors.Join(c.in.Close(), c.out.Close()) })
	return err
}

// There are no addresses, and the server's own clock sets the limits of time.

func (c *stdioConn) LocalAddr() net.Addr              { return stdioAddr{} }
func (c *stdioConn) RemoteAddr() net.Addr             { return stdioAddr{} }
func (c *stdioConn) SetDeadline(time.Time) error      { return nil }
func (c *stdioConn) SetReadDeadline(time.Time) error  { return nil }
func (c *stdioConn) SetWriteDeadline(time.Time) error { return nil }

type stdioAddr struct{}

func (stdioAddr) Network() string { return "stdio" }
func (stdioAddr) String() string  { return "stdio" }
