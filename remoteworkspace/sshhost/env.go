package sshhost

import (
	"net"
	"regexp"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Forms of what clients may send for the environment.
var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	termName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

// acceptEnv reports whether clients may set a variable. The list is of what programs
// expect from an SSH server and what cannot change which code runs: nothing of the
// loader's, the shells' or the interpreters' own.
func acceptEnv(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "GIT_PROTOCOL":
		return true
	}
	return strings.HasPrefix(name, "LC_") && envName.MatchString(name)
}

// environment collects the variables of one session within bounds.
type environment struct {
	vars  sandbox.Env
	bytes int
}

// set takes a variable, or reports that it was refused.
func (e *environment) set(name, value string, l Limits) bool {
	size := len(name) + len(value)
	_, again := e.vars[name]
	switch {
	case !acceptEnv(name), strings.IndexByte(value, 0) >= 0:
		return false
	case !again && len(e.vars) >= l.EnvCount, e.bytes+size > l.EnvBytes:
		return false
	}
	if e.vars == nil {
		e.vars = sandbox.Env{}
	}
	e.vars[name] = value
	e.bytes += size
	return true
}

// forCommand is the environment of a command: what the client set, its terminal, and its
// own address. The server's address would tell about the host and is left out.
func (e *environment) forCommand(c *conn, term string) sandbox.Env {
	env := e.vars.Clone()
	if env == nil {
		env = sandbox.Env{}
	}
	if term != "" {
		env["TERM"] = term
	}
	port := "0"
	if _, p, err := net.SplitHostPort(c.remote); err == nil {
		port = p
	}
	env["SSH_CLIENT"] = from(c.addr) + " " + port + " 22"
	env["SSH_CONNECTION"] = from(c.addr) + " " + port + " 0.0.0.0 22"
	return env
}
