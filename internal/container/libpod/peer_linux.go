package libpod

import (
	"fmt"
	"net"
	"os"
	"syscall"
)

// limitsOfPeer looks up the process at the other end of a connection. Under socket activation that
// is the service manager, from which the engine has its limits.
func limitsOfPeer(conn net.Conn) peerLimits {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return peerLimits{}
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return peerLimits{}
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || credErr != nil || cred.Pid <= 0 {
		return peerLimits{}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cred.Pid))
	if err != nil {
		return peerLimits{}
	}
	return parseLimits(string(text))
}
