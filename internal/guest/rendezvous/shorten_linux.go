package rendezvous

import (
	"fmt"
	"os"
)

// shorten gives a name of a directory that fits into a socket address, however deep the directory
// lies, until release.
func shorten(dir string) (name string, release func(), err error) {
	if len(dir)+len("/"+socketName) <= maxSocketPath {
		return dir, func() {}, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd()), func() { _ = f.Close() }, nil
}
