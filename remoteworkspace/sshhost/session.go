package sshhost

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// The kinds of sessions.
const (
	kindShell = "shell"
	kindExec  = "exec"
	kindSFTP  = "sftp"
)

// session is one channel on which something can be started, once.
type session struct {
	conn *conn
	id   uint64
	ch   ssh.Channel
	// ctx ends when the client has left this channel, or the connection ends.
	ctx  context.Context
	gone context.CancelCauseFunc
	// over is closed when everything the session started has ended.
	over chan struct{}

	env     environment
	term    string
	in, out atomic.Int64

	mu      sync.Mutex
	tty     *sandbox.TTYSize
	kind    string // set once something was started
	running *sandbox.Running
}

// session serves a session channel to its end.
func (c *conn) session(nch ssh.NewChannel) {
	ch, reqs, err := nch.Accept()
	if err != nil {
		return
	}
	s := &session{conn: c, id: c.srv.ids.Add(1), ch: ch, over: make(chan struct{})}
	s.ctx, s.gone = context.WithCancelCause(c.ctx)
	defer s.gone(nil)
	c.srv.metrics.running.Inc()
	defer c.srv.metrics.running.Dec()
	for r := range reqs {
		ok, start := s.request(r)
		if r.WantReply {
			_ = r.Reply(ok, nil) // a client that has left is noticed below
		}
		if start != nil {
			go func() {
				defer close(s.over)
				start()
			}()
		}
	}
	s.gone(errClientGone)
	if s.started() {
		<-s.over
	}
	_ = ch.Close() // the client has left, or closed it first
}

func (s *session) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind != ""
}

// begin claims the session for one thing to be started.
func (s *session) begin(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind != "" {
		return false
	}
	s.kind = kind
	return true
}

// request handles one request of the channel. start is run after the answer was sent.
func (s *session) request(r *ssh.Request) (ok bool, start func()) {
	switch r.Type {
	case "env":
		var m struct{ Name, Value string }
		return ssh.Unmarshal(r.Payload, &m) == nil && !s.started() && s.env.set(m.Name, m.Value, s.conn.srv.limits), nil
	case "pty-req":
		return s.pty(r.Payload), nil
	case "window-change":
		return s.resize(r.Payload), nil
	case "signal":
		var m struct{ Signal string }
		return ssh.Unmarshal(r.Payload, &m) == nil && s.signal(ssh.Signal(m.Signal)), nil
	case "shell":
		if s.begin(kindShell) {
			return true, func() { s.command(kindShell, "") }
		}
	case "exec":
		var m struct{ Command string }
		l := s.conn.srv.limits
		if ssh.Unmarshal(r.Payload, &m) != nil || len(m.Command) > l.CommandBytes || strings.IndexByte(m.Command, 0) >= 0 {
			return false, nil
		}
		if s.begin(kindExec) {
			return true, func() { s.command(kindExec, m.Command) }
		}
	case "subsystem":
		var m struct{ Name string }
		if ssh.Unmarshal(r.Payload, &m) == nil && m.Name == "sftp" && s.begin(kindSFTP) {
			return true, s.sftp
		}
	}
	return false, nil
}

// pty notes the terminal the client wants. Its modes are not applied.
func (s *session) pty(payload []byte) bool {
	var m struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}
	if ssh.Unmarshal(payload, &m) != nil || !s.conn.grant.Load().pty || s.started() {
		return false
	}
	if termName.MatchString(m.Term) {
		s.term = m.Term
	} else {
		s.term = "dumb"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tty = &sandbox.TTYSize{Rows: clampSize(m.Rows, 24), Cols: clampSize(m.Cols, 80)}
	return true
}

// clampSize fits a number of the client's into a terminal; zero is unknown.
func clampSize(n uint32, unknown uint16) uint16 {
	if n == 0 {
		return unknown
	}
	return uint16(min(n, 1<<15))
}

// resize sets the size of the terminal, or the one it will have.
func (s *session) resize(payload []byte) bool {
	var m struct{ Cols, Rows, Width, Height uint32 }
	if ssh.Unmarshal(payload, &m) != nil {
		return false
	}
	s.mu.Lock()
	if s.tty == nil {
		s.mu.Unlock()
		return false
	}
	size := sandbox.TTYSize{Rows: clampSize(m.Rows, 24), Cols: clampSize(m.Cols, 80)}
	*s.tty = size
	running := s.running
	s.mu.Unlock()
	return running == nil || running.Resize(s.ctx, size) == nil
}

// signal passes a signal on to the command.
func (s *session) signal(name ssh.Signal) bool {
	number, ok := signals()[name]
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	return ok && running != nil && running.Signal(s.ctx, int(number)) == nil
}

// moved counts bytes of the session from and to the client.
func (s *session) moved(in, out int) {
	s.in.Add(int64(in))
	s.out.Add(int64(out))
	s.conn.in.Add(int64(in))
	s.conn.out.Add(int64(out))
	s.conn.srv.metrics.moved(int64(in), int64(out))
	s.conn.hear()
}

// finished writes a session down.
func (s *session) finished(kind, what, outcome, detail string, ms int64) {
	label := "ended"
	if outcome == "failed" {
		label = outcome
	}
	s.conn.srv.metrics.sessions.WithLabelValues(kind, label).Inc()
	s.conn.event(Event{
		Event: "session", Session: s.id, Kind: kind, What: what, Outcome: outcome, Detail: detail,
		In: s.in.Load(), Out: s.out.Load(), DurationMS: ms,
	})
}
