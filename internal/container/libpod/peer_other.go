//go:build !linux

package libpod

import "net"

// limitsOfPeer: an engine on another machine tells nothing of its limits.
func limitsOfPeer(net.Conn) peerLimits { return peerLimits{} }
