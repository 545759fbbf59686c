package byssh

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// Host is where an engine is.
type Host struct {
	// User and Port are empty where ssh's configuration decides.
	User, Name, Port string
	// Socket is the path of the engine's socket there; empty for the usual one.
	Socket string
	// Identity is a file with a private key to use before others; may be empty.
	Identity string
}

// Parse reads ssh://[USER@]HOST[:PORT][/SOCKET].
func Parse(address string) (Host, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
	case u.Scheme != "ssh":
		err = errors.New("it does not begin with ssh://")
	case u.Hostname() == "":
		err = errors.New("it names no host")
	case strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-"):
		err = errors.New("a name cannot begin with a dash")
	case u.RawQuery != "" || u.Fragment != "":
		err = errors.New("nothing can follow the path")
	default:
		if _, secret := u.User.Password(); secret {
			err = errors.New("a password cannot be in it; use a key")
		}
	}
	if err != nil {
		return Host{}, fmt.Errorf("write it as ssh://[USER@]HOST[:PORT][/SOCKET]: %w", err)
	}
	h := Host{User: u.User.Username(), Name: u.Hostname(), Port: u.Port()}
	if p := path.Clean("/" + u.Path); p != "/" {
		h.Socket = p
	}
	return h, nil
}

// How long ssh may take to connect, and how it notices that the other machine is gone, in seconds.
const (
	connectTimeout = "ConnectTimeout=30"
	aliveInterval  = "ServerAliveInterval=15"
	aliveCount     = "ServerAliveCountMax=3"
)

// arguments are those of ssh. more are further options, command is run there.
func (h Host) arguments(more []string, command ...string) []string {
	args := []string{"-T", "-o", connectTimeout, "-o", aliveInterval, "-o", aliveCount, "-o", "BatchMode=yes"}
	if h.Identity != "" {
		args = append(args, "-i", h.Identity)
	}
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	if h.Port != "" {
		args = append(args, "-p", h.Port)
	}
	args = append(args, more...)
	args = append(args, "--", h.Name)
	return append(args, command...)
}

// word quotes a word for the shell of the other machine.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// DialStdio is the command by which the docker program there connects its input and output to the engine.
func (h Host) DialStdio() []string {
	if h.Socket == "" {
		return []string{"docker", "system", "dial-stdio"}
	}
	return []string{"docker", "--host=" + word("unix://"+h.Socket), "system", "dial-stdio"}
}
