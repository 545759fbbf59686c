//go:build linux

package rooted

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Attempts bounds how often a step is repeated that a concurrent rename has disturbed.
const Attempts = 128

// BufferSize is the size of the buffers of a Tree, in bytes.
const BufferSize = 128 << 10

// ErrBusy reports that names kept changing under an operation for Attempts tries. Nothing was
// changed by the operation.
var ErrBusy = fmt.Errorf("the path kept changing while it was resolved: %w", unix.EAGAIN)

// errChanged makes a resolution start again.
var errChanged = errors.New("changed")

// ignoringEINTR repeats a call that a signal has interrupted.
func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func retryOpen(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// beneath opens a path below a handle with openat2. It repeats EAGAIN, which the kernel gives when
// a rename made it unsure whether ".." stayed inside.
func beneath(dir int, name string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	for range Attempts {
		fd, err := unix.Openat2(dir, name, &how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, ErrBusy
}

const resolveBeneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

func probeOpenat2(dir int) bool {
	fd, err := beneath(dir, ".", unix.O_PATH|unix.O_DIRECTORY, resolveBeneath)
	if err != nil {
		return false
	}
	Close(fd)
	return true
}

func probeStatx() bool {
	var stx unix.Statx_t
	return unix.Statx(unix.AT_FDCWD, "/", unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS, &stx) == nil
}

// Read is read(2) without interruptions.
func Read(fd int, b []byte) (int, error) {
	return ignoringEINTR(func() (int, error) { return unix.Read(fd, b) })
}

// WriteAll writes all of b.
func WriteAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := ignoringEINTR(func() (int, error) { return unix.Write(fd, b) })
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Close closes a descriptor that came from this package.
func Close(fd int) { _ = unix.Close(fd) }

// Buffer lends a buffer of BufferSize bytes; give it back with Release.
func (t *Tree) Buffer() *[]byte { return t.buffers.Get().(*[]byte) }

// Release takes a buffer back.
func (t *Tree) Release(b *[]byte) { t.buffers.Put(b) }

// Pread is pread(2) without interruptions.
func Pread(fd int, b []byte, off int64) (int, error) {
	return ignoringEINTR(func() (int, error) { return unix.Pread(fd, b, off) })
}
