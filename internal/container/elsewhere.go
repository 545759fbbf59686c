package container

import (
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// An engine on another machine does not see the files of this one, and a directory of the same name
// there would be mounted in their place. So nothing of this machine is bound there: what a sandbox needs
// is carried into volumes (see carry.go and copy.go), and the helper is spoken to by the container's own
// input and output.

// Elsewhere reports whether an engine's address is that of another machine for certain. Behind a socket
// and a port of this machine may be another one too: that is found out by what a container sees.
func Elsewhere(address string) bool {
	scheme, rest, _ := strings.Cut(address, "://")
	switch scheme {
	case "ssh":
		return true
	case "tcp", "http", "https":
		return !here(rest)
	default:
		return false
	}
}

// here reports whether HOST:PORT, of which the port and a path behind it do not matter, is this machine.
func here(address string) bool {
	address, _, _ = strings.Cut(address, "/")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// elsewhereError says that the engine does not see this machine's workspace, or not its directory of
// records. It is a *sandbox.Problem for who does not know better.
type elsewhereError struct{ problem error }

func (e *elsewhereError) Error() string { return e.problem.Error() }
func (e *elsewhereError) Unwrap() error { return e.problem }

// orElsewhere marks the problem of a mount that is not the one that was meant. A bind alone makes no
// other machine.
func orElsewhere(target string, kindOf func(string) (hostmount.Mount, bool), problem error) error {
	if m, ok := kindOf(target); target == sandbox.HelperPath || ok && isWorkspace(m) {
		return &elsewhereError{problem}
	}
	return problem
}

// refuseAway says what cannot be had on another machine, before anything is made there.
func refuseAway(spec sandbox.Spec, about Description) error {
	const machine = "the engine runs on another machine"
	c := spec.Config
	for i, b := range c.Binds {
		return &sandbox.Problem{
			Field: "binds", What: fmt.Sprintf("bind %q to %q", b.Source, b.Target),
			Rule:   machine + ", where files of this one cannot be bound",
			Remedy: fmt.Sprintf("remove bind %d and put the files into the workspace or the image, or use an engine of this machine", i+1),
			Err:    sandbox.ErrRefused,
		}
	}
	if about.Product == "podman" && c.SeccompProfile != "" && c.SeccompProfile != "default" && c.SeccompProfile != "unconfined" {
		return &sandbox.Problem{
			Field: "seccompProfile", What: fmt.Sprintf("profile %q", c.SeccompProfile),
			Rule:   machine + ", and Podman reads profiles from files there only",
			Remedy: "use the profile default, or an engine of this machine", Err: sandbox.ErrRefused,
		}
	}
	return nil
}

// warnAway tells that what happens is not what somebody who named a socket of this machine expects.
func warnAway(log *slog.Logger, id sandbox.ID, workspace string, why error) {
	log.Warn("the engine does not see the files of this machine: the sandbox works on a copy of the workspace, in a volume of the engine",
		"sandbox", id, "workspace", workspace, "reason", why)
}
