package sshtest

import (
	"context"
	"slices"
	"syscall"
)

// PID is the number of the process that listens.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log is what the server has written so far.
func (s *Server) Log() string { return s.log.String() }

// WaitForLog waits until the server's log has the text. It reports whether that came before the end of
// ctx.
func (s *Server) WaitForLog(ctx context.Context, text string) bool { return s.log.waitFor(ctx, text) }

// Connections returns the process of each connection: the one that the listening process started for
// it.
func (s *Server) Connections() []int {
	var pids []int
	for _, p := range processes() {
		if p.parent == s.PID() && p.state != 'Z' {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// own returns the processes of the server below the listening one, parents first. Commands that clients
// run are not among them.
func (s *Server) own() []int {
	var pids []int
	for _, p := range below(s.PID()) {
		if isServers(p) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Pause stops every process of the server, as a network does that swallows everything: new connections
// are accepted by the kernel and never answered. Commands of clients go on.
func (s *Server) Pause() {
	signal(syscall.SIGSTOP, s.PID())
	// A process may start another before it stops.
	for stopped := []int{}; ; {
		found := s.own()
		if !slices.ContainsFunc(found, func(pid int) bool { return !slices.Contains(stopped, pid) }) {
			return
		}
		signal(syscall.SIGSTOP, found...)
		stopped = append(stopped, found...)
	}
}

// Resume lets the server go on after Pause.
func (s *Server) Resume() {
	signal(syscall.SIGCONT, s.own()...)
	signal(syscall.SIGCONT, s.PID())
}

// CutConnections kills the server's side of every connection at once. The server goes on listening, and
// commands of clients are left to notice the end of their streams.
func (s *Server) CutConnections() { signal(syscall.SIGKILL, s.own()...) }

// Stop ends the server, its connections and the commands its clients run, as far as these are still
// below it. It may be called more than once.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.cmd != nil {
			s.halt()
		}
	})
}

// halt kills the processes and waits for the first of them.
func (s *Server) halt() {
	select {
	case <-s.done:
		return
	default:
	}
	signal(syscall.SIGSTOP, s.PID()) // it starts no more
	for _, p := range below(s.PID()) {
		signal(syscall.SIGKILL, p.pid)
	}
	signal(syscall.SIGKILL, s.PID())
	<-s.done
}
