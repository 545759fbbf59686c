package client

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/workberth/workberth/internal/guest/wire"
)

// greet finds the server's greeting and answers it, at most until ctx ends: then
// the connection is closed, and a transport whose reads closing does not interrupt
// is left to itself.
func (c *Conn) greet(ctx context.Context, opts Options) error {
	greeted := make(chan error, 1)
	go func() { greeted <- c.greeting(opts) }()
	select {
	case err := <-greeted:
		return err
	case <-ctx.Done():
	}
	_ = c.conn.Close()
	late := &HandshakeError{Err: context.Cause(ctx)}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case err := <-greeted:
		var failed *HandshakeError
		if errors.As(err, &failed) {
			late.Said = failed.Said
		}
	case <-timer.C:
	}
	return late
}

func (c *Conn) greeting(opts Options) error {
	limit := opts.SkipLimit
	switch {
	case limit == 0:
		limit = wire.MaxBanner
	case limit < 0:
		limit = 0
	}
	banner, err := c.frames.SkipTo(wire.Magic, limit)
	said := wire.Printable(string(banner), wire.MaxQuote)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errHungUp
		}
		return &HandshakeError{Said: said, Err: err}
	}
	hello, err := c.readHello()
	if err != nil {
		return &HandshakeError{Said: said, Err: err}
	}
	// The answer goes out also to a server of another version, which then can
	// name both as well.
	if err := c.sayHello(opts.Build); err != nil && hello.Protocol == wire.Version {
		return &HandshakeError{Said: said, Err: err}
	}
	if hello.Protocol != wire.Version {
		return &VersionError{
			Host:  wire.Peer{Protocol: wire.Version, Build: opts.Build},
			Guest: wire.Peer{Protocol: hello.Protocol, Build: hello.Build},
		}
	}
	c.hello = hello
	return nil
}

func (c *Conn) readHello() (wire.Hello, error) {
	f, err := c.frames.NextHello()
	if errors.Is(err, io.EOF) {
		err = errHungUp
	}
	if err != nil {
		return wire.Hello{}, err
	}
	defer f.Release()
	if f.Kind() != wire.KindHello || f.Stream() != 0 {
		return wire.Hello{}, wire.Violation("%v frame where hello was due", f.Kind())
	}
	return wire.DecodeHello(f.Payload())
}

func (c *Conn) sayHello(build string) error {
	f := wire.NewFrame(wire.KindHello, 0, 512)
	defer f.Release()
	f.B = wire.Hello{Protocol: wire.Version, Build: build, Pid: os.Getpid()}.Append(f.B)
	b, _ := f.Bytes()
	_, err := c.conn.Write(b)
	return err
}
