//go:build linux

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilAsked returns a context that ends when the helper is asked to end by
// SIGTERM. It is deaf to what is meant for the commands of a terminal.
//
// As process 1 of an environment it is deaf to SIGTERM and to everything else that
// can be ignored: commands have its user id, and the kernel keeps only those signals
// from process 1 that have no handler, while the Go runtime has one for nearly all.
// It then ends with its connection, or by SIGKILL from outside.
func untilAsked() (context.Context, context.CancelFunc) {
	if os.Getpid() != 1 {
		signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGQUIT)
		return signal.NotifyContext(context.Background(), syscall.SIGTERM)
	}
	for s := syscall.Signal(1); s < 32; s++ {
		switch s {
		case syscall.SIGKILL, syscall.SIGSTOP: // never come from inside
		case syscall.SIGCHLD: // tells of orphans
		case syscall.SIGURG: // the Go runtime's own, which takes any number of them
		default:
			signal.Ignore(s)
		}
	}
	return context.WithCancel(context.Background())
}
