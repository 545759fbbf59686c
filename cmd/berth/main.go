// Command berth runs an agent's commands and serves its files in a sandbox.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	a, err := newApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth:", err)
		os.Exit(exitRefused)
	}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
