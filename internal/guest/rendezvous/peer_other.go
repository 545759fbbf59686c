//go:build !linux

package rendezvous

import "net"

// peerUID cannot tell the user on this system, so that a list of users admits nobody.
func peerUID(*net.UnixConn) (uid int, ok bool) { return 0, false }
