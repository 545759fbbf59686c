package rendezvous

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID returns the user of the process at the other end, as seen from here.
func peerUID(c *net.UnixConn) (uid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return 0, false
	}
	return int(cred.Uid), true
}
