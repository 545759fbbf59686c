//go:build !unix

package mux

import (
	"io"
	"os"
)

// Stdio makes a connection of this process's standard input and output.
func Stdio() (io.ReadWriteCloser, error) { return Join(os.Stdin, os.Stdout), nil }
