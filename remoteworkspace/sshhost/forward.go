package sshhost

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// A forwarded connection (ssh -L) is made by a command of the sandbox: the guest helper in its
// role "dial", which knows the sandbox's own loopback and nothing else. So it reaches what
// other commands reach, also where the sandbox has a network of its own, and no more.

// dialTimeout bounds the start of a forwarded connection.
const dialTimeout = 15 * time.Second

// dialProgram is the helper's place inside.
const dialProgram = sandbox.HelperPath + "/berth-guest"

// isLoopback reports whether a client means the machine it is connected to, which is the sandbox.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// forward serves a direct-tcpip channel to its end.
func (c *conn) forward(nch ssh.NewChannel) {
	begun := c.srv.clock.Now()
	var m struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(nch.ExtraData(), &m) != nil {
		_ = nch.Reject(ssh.ConnectionFailed, "malformed request")
		return
	}
	f := &forwarded{c: c, id: c.srv.ids.Add(1), ready: make(chan struct{}), open: make(chan struct{}), over: make(chan struct{})}
	f.finish = sync.OnceFunc(func() { close(f.over) })
	defer f.finish()
	what := net.JoinHostPort(clip(m.Host, 255), strconv.FormatUint(uint64(m.Port), 10))
	done := func(outcome string) {
		c.event(Event{
			Event: "forward", Session: f.id, What: what, Outcome: outcome, In: f.in.Load(), Out: f.out.Load(),
			DurationMS: c.srv.clock.Now().Sub(begun).Milliseconds(),
		})
	}
	switch {
	case !c.grant.Load().forward:
		_ = nch.Reject(ssh.Prohibited, "forwarding is not permitted in this workspace")
		done("refused")
	case !isLoopback(m.Host) || m.Port == 0 || m.Port > 65535:
		_ = nch.Reject(ssh.Prohibited, "only ports of localhost can be reached, which is the sandbox's own loopback")
		done("refused")
	default:
		done(f.serve(nch, strconv.FormatUint(uint64(m.Port), 10)))
	}
}

// forwarded is one connection. It is the command's standard input and output: the first byte
// it writes says that the connection stands, and the channel is opened then.
type forwarded struct {
	c  *conn
	id uint64
	// ready is closed with the first byte, open when ch can be used, over (by finish) when
	// nothing is to be waited for any more.
	ready, open, over chan struct{}
	once              sync.Once
	finish            func()
	ch                ssh.Channel
	in, out           atomic.Int64
}

// serve connects, copies, and says what came of it.
func (f *forwarded) serve(nch ssh.NewChannel, port string) (outcome string) {
	c := f.c
	fail := func(text string) string {
		_ = nch.Reject(ssh.ConnectionFailed, text)
		return "failed"
	}
	sb, release, err := c.srv.sandboxOf(c.ctx, c.grant.Load())
	if err != nil {
		return fail("the workspace's sandbox is not to be had now")
	}
	defer release()
	if err := c.assertCurrent(); err != nil {
		return fail("not permitted any more")
	}
	r, err := sandbox.Start(context.WithoutCancel(c.ctx), sb, sandbox.Command{Argv: []string{dialProgram, "dial", port}, Stdin: true}, nil,
		sandbox.IO{Stdin: readerFunc(f.read), Stdout: writerFunc(f.write)}, sandbox.StartOptions{Log: c.srv.log})
	if err != nil {
		c.srv.log.Info("a forwarded connection failed", "session", f.id, "error", err)
		return fail("connections cannot be forwarded into this sandbox")
	}
	select {
	case <-f.ready:
	case <-r.Done():
		return fail("nothing answers at port " + port + " of the sandbox's loopback")
	case <-c.ctx.Done():
		f.end(r)
		return fail("the connection has ended")
	case <-c.srv.clock.After(dialTimeout):
		f.end(r)
		return fail("nothing answers in time")
	}
	ch, reqs, err := nch.Accept()
	if err != nil {
		f.end(r)
		return "failed"
	}
	f.ch = ch
	close(f.open)
	gone := make(chan struct{})
	go func() {
		ssh.DiscardRequests(reqs)
		close(gone)
	}()
	select {
	case <-r.Done():
	case <-gone:
		select { // what the client sent last is on its way
		case <-r.Done():
		case <-c.srv.clock.After(hangupGrace):
		}
		f.end(r)
	}
	_ = ch.CloseWrite() // a client that has left needs to know nothing
	_ = ch.Close()
	<-gone
	return "closed"
}

// end ends the command.
func (f *forwarded) end(r *sandbox.Running) {
	f.finish()
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	if res, err := r.Terminate(ctx, hangupGrace); res.Outcome != sandbox.TerminationGone {
		f.c.srv.log.Error("the processes of a forwarded connection may be left", "session", f.id, "outcome", res.Outcome, "error", err)
	}
	<-r.Done()
}

// read gives the command what the client sends.
func (f *forwarded) read(p []byte) (int, error) {
	select {
	case <-f.open:
	case <-f.over:
		return 0, io.EOF
	}
	n, err := f.ch.Read(p)
	f.in.Add(int64(n))
	f.moved(n, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		err = io.EOF
	}
	return n, err
}

// write passes on what the command writes, after its first byte.
func (f *forwarded) write(p []byte) (int, error) {
	rest := p
	f.once.Do(func() {
		rest = p[1:]
		close(f.ready)
	})
	select {
	case <-f.open:
	case <-f.over:
		return len(p), nil
	}
	n, err := f.ch.Write(rest)
	f.out.Add(int64(n))
	f.moved(0, n)
	if err != nil {
		return len(p), nil // the client has left; serve notices
	}
	return len(p), nil
}

func (f *forwarded) moved(in, out int) {
	f.c.in.Add(int64(in))
	f.c.out.Add(int64(out))
	f.c.srv.metrics.moved(int64(in), int64(out))
	f.c.hear()
}

type readerFunc func([]byte) (int, error)

func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
