package rendezvous

import (
	"errors"
	"io"
	"syscall"
)

// isClosedByPeer reports whether an error means that the other end closed.
func isClosedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
