package sshhost

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/workberth/workberth/sandbox"
)

const (
	// hangupGrace is the time between SIGHUP and the end of the tree by custody.
	hangupGrace = 500 * time.Millisecond
	// endBound bounds the end of a session's processes.
	endBound = 20 * time.Second
)

// command runs a shell or a command and tells the client how it ended.
func (s *session) command(kind, command string) {
	begun := s.conn.srv.clock.Now()
	elapsed := func() int64 { return s.conn.srv.clock.Now().Sub(begun).Milliseconds() }
	sb, release, err := s.conn.srv.sandboxOf(s.ctx, s.conn.grant.Load())
	if err != nil {
		s.fail(kind, command, err, elapsed())
		return
	}
	defer release()
	running, err := s.launch(sb, kind, command)
	if err != nil {
		s.fail(kind, command, err, elapsed())
		return
	}
	status, detail := s.attend(running, sb)
	s.finished(kind, command, describe(status), detail, elapsed())
	if status.Unknown {
		s.tell("berth: the sandbox was lost while the command ran; what became of it is unknown\n")
		status.Code = codeFailed
	}
	s.leave(status)
}

// leave tells the client how it ended, after all output, and closes the channel. The end of the
// output comes last: a client whose input has ended too closes the channel when it sees it, and can
// be told nothing afterwards.
func (s *session) leave(status sandbox.ExitStatus) {
	_ = report(s.ch, status) // a client that has left needs to know nothing
	_ = s.ch.CloseWrite()
	_ = s.ch.Close()
}

// tell writes a message for the person at the other end to standard error, or, with a
// terminal, where they look.
func (s *session) tell(text string) {
	s.mu.Lock()
	terminal := s.tty != nil
	s.mu.Unlock()
	if terminal {
		_, _ = io.WriteString(s.ch, text[:len(text)-1]+"\r\n") // a client that has left needs no message
		return
	}
	_, _ = io.WriteString(s.ch.Stderr(), text)
}

// fail tells that nothing was run.
func (s *session) fail(kind, what string, err error, ms int64) {
	text, code := startFailure(err, s.id)
	if errors.Is(err, errNoShell) {
		text, code = noShell, codeNoCommand
	}
	s.conn.srv.log.Info("a session failed", "session", s.id, "workspace", s.conn.grant.Load().workspace, "error", err)
	s.finished(kind, what, "failed", clip(err.Error(), 200), ms)
	s.tell(text)
	s.leave(sandbox.ExitStatus{Code: code})
}

// errNoShell: the sandbox has nothing to run a command's text with.
var errNoShell = errors.New("no shell in the sandbox")

// launch starts the command: by the first shell that exists, or without one.
func (s *session) launch(sb sandbox.Sandbox, kind, command string) (*sandbox.Running, error) {
	script := command
	if kind == kindShell {
		script = loginScript
	}
	for _, shell := range launchers() {
		running, err := s.start(sb, []string{shell, "-c", script})
		if start := (*sandbox.StartError)(nil); errors.As(err, &start) && start.Reason == sandbox.StartNoCommand {
			continue
		}
		return running, err
	}
	if words, ok := plainWords(command); ok && kind == kindExec {
		return s.start(sb, words)
	}
	return nil, errNoShell
}

// start starts one program with the session's streams.
func (s *session) start(sb sandbox.Sandbox, argv []string) (*sandbox.Running, error) {
	s.mu.Lock()
	var tty *sandbox.TTYSize
	if s.tty != nil {
		size := *s.tty
		tty = &size
	}
	s.mu.Unlock()
	ws := s.conn.srv.policy.Load().Workspaces[s.conn.grant.Load().workspace]
	cmd := sandbox.Command{Argv: argv, TTY: tty, Stdin: true, KeepDescendants: ws.KeepBackground}
	streams := sandbox.IO{Stdin: &input{s: s}, Stdout: &output{s: s, w: s.ch}, Stderr: &output{s: s, w: s.ch.Stderr()}}
	if err := s.conn.assertCurrent(); err != nil {
		return nil, err
	}
	// The end of the client does not end the command by the context: SIGHUP comes first.
	running, err := sandbox.Start(context.WithoutCancel(s.ctx), sb, cmd, s.env.forCommand(s.conn, s.term), streams,
		sandbox.StartOptions{Log: s.conn.srv.log})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.running = running
	resized := tty != nil && *s.tty != *tty
	var size sandbox.TTYSize
	if resized {
		size = *s.tty
	}
	s.mu.Unlock()
	if resized {
		_ = running.Resize(s.ctx, size) // a command that is over has no size
	}
	return running, nil
}

// attend waits for the command, and ends it when its client has left. C177.
func (s *session) attend(r *sandbox.Running, sb sandbox.Sandbox) (st sandbox.ExitStatus, detail string) {
	select {
	case <-r.Done():
	case <-s.ctx.Done():
		detail = context.Cause(s.ctx).Error()
		s.hangUp(r)
	}
	select {
	case <-sb.Done():
		detail = errSandboxGone.Error()
	default:
	}
	st, _ = r.Wait(context.Background()) // it is done
	return st, detail
}

// hangUp ends a command as a terminal that is closed does, and then everything it started.
func (s *session) hangUp(r *sandbox.Running) {
	ctx, cancel := context.WithTimeout(context.Background(), endBound)
	defer cancel()
	_ = r.Signal(ctx, int(syscall.SIGHUP)) // one that is over needs none
	select {
	case <-r.Done():
	case <-s.conn.srv.clock.After(hangupGrace):
	}
	result, err := r.Terminate(ctx, 0)
	if result.Outcome != sandbox.TerminationGone {
		s.conn.srv.log.Error("processes of a session may be left", "session", s.id, "outcome", result.Outcome, "pids", result.Pids, "error", err)
	}
	<-r.Done()
}

// input is the client's input. Its end is an end only when the client is still there: a
// command must not take half an input for the whole.
type input struct{ s *session }

func (i *input) Read(p []byte) (int, error) {
	n, err := i.s.ch.Read(p)
	i.s.moved(n, 0)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		// A client that answers has closed its side on purpose. The question is the one
		// that OpenSSH's server asks.
		if _, err := i.s.ch.SendRequest("keepalive@openssh.com", true, nil); err == nil {
			return n, io.EOF
		}
	}
	i.s.gone(errClientGone)
	<-i.s.over // SIGHUP ends the command, not the lack of input
	return n, io.ErrUnexpectedEOF
}

// output goes to the client. One that has left ends the session.
type output struct {
	s *session
	w io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.s.moved(0, n)
	if err != nil {
		o.s.gone(errClientGone)
	}
	return len(p), nil
}
