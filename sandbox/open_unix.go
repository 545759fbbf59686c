//go:build unix

package sandbox

import "golang.org/x/sys/unix"

// openNonblock opens a FIFO without waiting for its other end.
const openNonblock = unix.O_NONBLOCK
