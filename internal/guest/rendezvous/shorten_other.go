//go:build !linux

package rendezvous

import "fmt"

// shorten refuses what does not fit into a socket address.
func shorten(dir string) (name string, release func(), err error) {
	if len(dir)+len("/"+socketName) > maxSocketPath {
		return "", nil, fmt.Errorf("the path of a socket in %q is longer than %d bytes: choose a shorter directory", dir, maxSocketPath)
	}
	return dir, func() {}, nil
}
