package sshhost

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// signals are the names RFC 4254 has for signals.
func signals() map[ssh.Signal]syscall.Signal {
	return map[ssh.Signal]syscall.Signal{
		ssh.SIGABRT: syscall.SIGABRT, ssh.SIGALRM: syscall.SIGALRM, ssh.SIGFPE: syscall.SIGFPE, ssh.SIGHUP: syscall.SIGHUP,
		ssh.SIGILL: syscall.SIGILL, ssh.SIGINT: syscall.SIGINT, ssh.SIGKILL: syscall.SIGKILL, ssh.SIGPIPE: syscall.SIGPIPE,
		ssh.SIGQUIT: syscall.SIGQUIT, ssh.SIGSEGV: syscall.SIGSEGV, ssh.SIGTERM: syscall.SIGTERM, ssh.SIGUSR1: syscall.SIGUSR1,
		ssh.SIGUSR2: syscall.SIGUSR2,
	}
}

// exitStatus and exitSignal are the messages of RFC 4254, 6.10.
type exitStatus struct{ Status uint32 }

type exitSignal struct {
	Signal     string
	CoreDumped bool
	Message    string
	Language   string
}

// Exit codes of the server's own failures.
const (
	codeFailed     = 255 // as OpenSSH's own failures
	codeNoCommand  = 127
	codeNotRunning = 126
)

// report tells the client how the command ended. An error means that it has left.
func report(ch ssh.Channel, st sandbox.ExitStatus) error {
	if st.Signal > 0 {
		for name, number := range signals() {
			if int(number) == st.Signal {
				_, err := ch.SendRequest("exit-signal", false, ssh.Marshal(exitSignal{Signal: string(name)}))
				return err
			}
		}
	}
	_, err := ch.SendRequest("exit-status", false, ssh.Marshal(exitStatus{uint32(st.Code)}))
	return err
}

// describe is the outcome of a command for the audit log.
func describe(st sandbox.ExitStatus) string {
	switch {
	case st.Unknown:
		return "unknown"
	case st.Signal > 0:
		return fmt.Sprintf("signal %d", st.Signal)
	}
	return fmt.Sprintf("exit %d", st.Code)
}

// startFailure is what the client sees of a command that could not be started: the reason
// where it is about the inside, and nothing about the host otherwise.
func startFailure(err error, session uint64) (text string, code int) {
	var start *sandbox.StartError
	switch {
	case errors.As(err, &start) && start.Reason == sandbox.StartNoCommand:
		return "berth: " + start.Error() + "\n", codeNoCommand
	case errors.As(err, &start) && start.Reason != sandbox.StartInternal:
		return "berth: " + start.Error() + "\n", codeNotRunning
	case errors.Is(err, errShuttingDown):
		return "berth: the server is shutting down; connect again later\n", codeFailed
	case errors.Is(err, sandbox.ErrInUse):
		return "berth: the workspace's sandbox is in use by another program of its host; try again later\n", codeFailed
	}
	return fmt.Sprintf("berth: the workspace's sandbox is not to be had now; the log of its host says why (session %d)\n", session), codeFailed
}
