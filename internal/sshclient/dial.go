package sshclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// clientVersion is what servers see.
const clientVersion = "SSH-2.0-berth"

// How often a handshake is begun again that the server dropped before it said anything,
// which is how a server with too many strangers at the door behaves.
const (
	maxGreetings = 5
	firstPause   = 100 * time.Millisecond
)

// connect makes one authenticated connection, through the hosts on the way. What it needs
// beneath is closed with it.
func (g *Group) connect(ctx context.Context) (*ssh.Client, []io.Closer, error) {
	var below []io.Closer
	fail := func(err error) (*ssh.Client, []io.Closer, error) {
		closeAll(below)
		return nil, nil, err
	}
	dial := dialTCP
	for _, hop := range append(append([]Settings(nil), g.s.Jumps...), g.s) {
		from := dial
		if hop.ProxyCommand != "" {
			from = dialCommand
		}
		client, err := g.hop(ctx, hop, from)
		if err != nil {
			return fail(err)
		}
		below = append(below, client)
		dial = func(ctx context.Context, s Settings) (net.Conn, error) {
			return client.DialContext(ctx, "tcp", s.Address())
		}
	}
	last := below[len(below)-1].(*ssh.Client) //nolint:forcetypeassert // only clients were put in
	return last, below[:len(below)-1], nil
}

// dialFunc reaches a host.
type dialFunc func(ctx context.Context, s Settings) (net.Conn, error)

func dialTCP(ctx context.Context, s Settings) (net.Conn, error) {
	d := net.Dialer{KeepAlive: 30 * time.Second}
	return d.DialContext(ctx, "tcp", s.Address())
}

// hop connects to one host and authenticates.
func (g *Group) hop(ctx context.Context, s Settings, dial dialFunc) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.ConnectTimeout, fmt.Errorf("no answer within %v", s.ConnectTimeout))
	defer cancel()
	keys, err := openHostKeys(s)
	if err != nil {
		return nil, err
	}
	pause := firstPause
	for attempt := 1; ; attempt++ {
		client, err := g.greet(ctx, s, keys, dial)
		if err == nil || attempt == maxGreetings || !turnedAway(err) {
			return client, g.explain(ctx, s, err)
		}
		g.log.Debug("the server dropped a connection before it said anything", "host", s.String(), "attempt", attempt)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return nil, g.explain(ctx, s, err)
		}
	}
}

// greet makes one attempt.
func (g *Group) greet(ctx context.Context, s Settings, keys *hostKeys, dial dialFunc) (*ssh.Client, error) {
	raw, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	ring := &keyring{s: s, passphrase: g.opts.Passphrase, unlocked: g.unlocked}
	defer ring.close()
	config := &ssh.ClientConfig{
		User: s.User, ClientVersion: clientVersion,
		HostKeyCallback: keys.check, HostKeyAlgorithms: keys.algorithms(),
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return ring.signers(ctx), nil })},
	}
	// A handshake knows no context: what it reads from is closed.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(raw, s.Address(), config)
	if !stop() && err == nil {
		err = context.Cause(ctx)
		_ = conn.Close()
	}
	if err != nil {
		_ = raw.Close()
		if keysRefused(err) {
			return nil, &authError{notes: ring.notes, err: err}
		}
		return nil, err
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// keysRefused reports a handshake that ended because of the keys: none is left, or the
// server has seen enough of them.
func keysRefused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unable to authenticate") || strings.Contains(text, "Too many authentication failures")
}

// authError is an authentication that failed, with what was not tried.
type authError struct {
	notes []string
	err   error
}

func (e *authError) Error() string {
	return strings.Join(append([]string{OneLine(e.err.Error())}, e.notes...), "; ")
}

func (e *authError) Unwrap() error { return e.err }

// turnedAway reports a connection that ended before the server had said anything.
func turnedAway(err error) bool {
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, ErrHostKeyUnknown) && !errors.Is(err, ErrHostKeyChanged) &&
		(errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// explain makes a failure one that tells what to do.
func (g *Group) explain(ctx context.Context, s Settings, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	d := &DialError{Host: s.String()}
	var auth *authError
	switch {
	case errors.Is(err, ErrHostKeyUnknown):
		d.Err = err
		d.Remedy = "compare the fingerprint with the host's, then connect once with: ssh " + sshArgs(s)
	case errors.Is(err, ErrHostKeyChanged):
		d.Err = err
		d.Remedy = "find out why; if the host was set up anew, remove the old key with: ssh-keygen -R '" + hostPattern(s) + "'"
	case errors.Is(err, ErrHostKeyRevoked):
		d.Err = err
		d.Remedy = "do not connect; the host needs a new key"
	case errors.As(err, &auth):
		d.Err = fmt.Errorf("%w: %w", ErrAuthentication, err)
		d.Remedy = "name a key with IdentityFile in the SSH configuration or load one into the agent; try: ssh " + sshArgs(s) + " true"
		if strings.Contains(err.Error(), "Too many") {
			d.Remedy = "name the right key with IdentityFile and set IdentitiesOnly yes, so that the agent's others are not offered first"
		}
	default:
		d.Err = fmt.Errorf("%w: %w", ErrUnreachable, err)
		d.Remedy = "look at name, port and network; try: ssh " + sshArgs(s) + " true"
	}
	return d
}

// sshArgs are the arguments of the ssh program for this host.
func sshArgs(s Settings) string {
	if s.Name == s.Host || s.Name == "" || strings.Contains(s.Name, ":") {
		return fmt.Sprintf("-p %d %s@%s", s.Port, s.User, s.Host)
	}
	return s.Name
}

// hostPattern is how the host stands in a file of known hosts.
func hostPattern(s Settings) string {
	switch {
	case s.HostKeyAlias != "":
		return s.HostKeyAlias
	case s.Port == 22:
		return s.Host
	}
	return fmt.Sprintf("[%s]:%d", s.Host, s.Port)
}

func closeAll(list []io.Closer) {
	for i := len(list) - 1; i >= 0; i-- {
		_ = list[i].Close()
	}
}
