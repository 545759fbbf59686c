package sshclient

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

// maxDestination bounds a destination, in bytes.
const maxDestination = 512

// What names must not have, as for OpenSSH's client: a ProxyCommand may put them before a
// shell. A user may have the backslash of a domain, and a dollar.
const (
	shellInHost = "'`\"$\\;&<>|(){},"
	shellInUser = "'`\";&<>|(){}"
)

// Destination is what a user names: a host or an alias of the configuration, perhaps with
// user and port.
type Destination struct {
	// User is empty when it is left to the configuration.
	User string
	Host string
	// Port is zero when it is left to the configuration.
	Port int
}

// ParseDestination reads USER@HOST:PORT, where user and port may be missing, an IPv6
// address with a port stands in brackets, and "ssh://" may come first.
func ParseDestination(s string) (Destination, error) {
	bad := func(rule string) (Destination, error) {
		return Destination{}, &DestinationError{Text: s, Rule: rule}
	}
	if len(s) > maxDestination {
		return bad(fmt.Sprintf("it is longer than %d bytes", maxDestination))
	}
	// A dash at the start would be an option to programs that are given it.
	if strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) >= 0 {
		return bad("it has a space or a control character")
	}
	rest, url := strings.CutPrefix(s, "ssh://")
	if url {
		rest = strings.TrimSuffix(rest, "/")
	}
	if strings.Contains(rest, "/") {
		return bad("a path is no part of it")
	}
	var d Destination
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		d.User, rest = rest[:i], rest[i+1:]
		if d.User == "" {
			return bad("nothing stands before the @")
		}
		if strings.ContainsRune(d.User, ':') {
			return bad("a password cannot be given in it; use a key or an agent")
		}
	}
	port := ""
	switch {
	case strings.HasPrefix(rest, "["):
		end := strings.IndexByte(rest, ']')
		if end < 0 || net.ParseIP(stripZone(rest[1:end])) == nil {
			return bad("no IPv6 address stands in the brackets")
		}
		d.Host, port = rest[1:end], rest[end+1:]
		if port != "" && port[0] != ':' {
			return bad("what follows the brackets is no port")
		}
		if port == ":" {
			return bad("nothing stands behind the colon")
		}
		port = strings.TrimPrefix(port, ":")
	case strings.Count(rest, ":") > 1: // an IPv6 address without a port
		if net.ParseIP(stripZone(rest)) == nil {
			return bad("it has more than one colon and is no IPv6 address")
		}
		d.Host = rest
	default:
		var has bool
		d.Host, port, has = strings.Cut(rest, ":")
		if has && port == "" {
			return bad("nothing stands behind the colon")
		}
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad("a port is a number from 1 to 65535")
		}
		d.Port = int(n)
	}
	switch {
	case d.Host == "":
		return bad("it names no host")
	case d.Host[0] == '-' || strings.HasPrefix(d.User, "-"):
		return bad("neither user nor host begins with a dash")
	case strings.ContainsAny(d.Host, shellInHost):
		return bad("the host has a character that is a command to a shell")
	case strings.ContainsAny(d.User, shellInUser) || strings.HasSuffix(d.User, `\`):
		return bad("the user has a character that is a command to a shell")
	}
	return d, nil
}

// stripZone removes the zone of an IPv6 address.
func stripZone(s string) string {
	addr, _, _ := strings.Cut(s, "%")
	return addr
}

// String returns the destination in the form that ParseDestination reads.
func (d Destination) String() string {
	s := d.Host
	if d.Port != 0 {
		s = net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	}
	if d.User != "" {
		s = d.User + "@" + s
	}
	return s
}
