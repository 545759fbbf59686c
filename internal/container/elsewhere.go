package container

import (
	"fmt"
	"net"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

// Here reports whether HOST:PORT, of which the port and a path behind it do not matter, is this machine.
func Here(address string) bool {
	address, _, _ = strings.Cut(address, "/")
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Elsewhere refuses an engine on another machine: it could not see the workspace, and a directory of
// the same name there would be mounted in its place. from says who has named it, instead how this
// machine's own is named.
func Elsewhere(address, from, instead string) error {
	return &sandbox.Problem{
		What: fmt.Sprintf("the engine at %s (%s)", address, from), Rule: "it runs on another machine, where this workspace is not",
		Remedy: "use the engine of this machine" + instead + ", or run berth on that one", Err: sandbox.ErrUnavailable,
	}
}
