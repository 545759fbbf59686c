package rendezvous

import (
	"crypto/subtle"
	"io"
	"net"
	"slices"
	"time"
)

// check reports whether a peer is the one: of a permitted user, with the token, in
// time, and still there to be told so.
func (l *Listener) check(c *net.UnixConn) bool {
	if c.SetDeadline(time.Now().Add(l.opts.TokenWait)) != nil {
		return false
	}
	if len(l.opts.PeerUIDs) > 0 {
		uid, ok := peerUID(c)
		if !ok || !slices.Contains(l.opts.PeerUIDs, uid) {
			return false
		}
	}
	var got [len(greeting) + tokenLen]byte
	if _, err := io.ReadFull(c, got[:]); err != nil {
		return false
	}
	if subtle.ConstantTimeCompare(got[:], []byte(greeting+l.token)) != 1 {
		return false
	}
	// A round trip: the peer must answer, so a token that was sent by a process
	// that is gone admits nobody.
	if _, err := c.Write([]byte{admitted}); err != nil {
		return false
	}
	var alive [1]byte
	if _, err := io.ReadFull(c, alive[:]); err != nil || alive[0] != admitted {
		return false
	}
	return c.SetDeadline(time.Time{}) == nil
}
