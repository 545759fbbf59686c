//go:build linux

package reaper

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// The main thread looks after orphans, as in the helper; the tests run on others.
func init() {
	if !IsRole(os.Args[1:]) {
		runtime.LockOSThread()
	}
}

// testOrphans is what the tests' runners share: a process has one.
var testOrphans = NewOrphans()

func TestMain(m *testing.M) {
	if code, played := Main(os.Args[1:]); played {
		os.Exit(code)
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleHost:
			os.Exit(hostMain())
		case roleSlay:
			os.Exit(slayMain())
		}
	}
	if err := Harden("reaper.test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := context.WithCancel(context.Background())
	code := 1
	go func() {
		defer stop()
		code = m.Run()
	}()
	if err := testOrphans.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}
