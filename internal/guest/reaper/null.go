//go:build linux

package reaper

import (
	"golang.org/x/sys/unix"
)

// openNull returns a descriptor that yields nothing to read: /dev/null, or where
// the image has none (or something else in its place) a pipe that has ended.
func openNull(flags int) (int, error) {
	fd, err := unix.Open("/dev/null", flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err == nil {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
			return fd, unix.SetNonblock(fd, false)
		}
		_ = unix.Close(fd)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, err
	}
	return p[0], unix.Close(p[1])
}
