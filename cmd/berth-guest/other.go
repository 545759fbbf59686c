//go:build !linux

// Command berth-guest is the helper that serves files and commands inside a
// sandbox. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "berth-guest: sandboxes run Linux; this helper needs it too")
	os.Exit(1)
}
