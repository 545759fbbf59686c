//go:build linux

package guestfs_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/mux"
	"github.com/workberth/workberth/internal/guest/server"
)

// roleVar makes the test program a server for benchmarks, so that the two sides
// are two processes as they are in use: "socket" serves on descriptor 3, "pipes" on
// standard input and output, "null" serves a bridge that costs nothing, "raw" echoes
// 16 bytes at a time without a protocol.
const (
	roleVar = "GUESTFS_TEST_ROLE"
	rootVar = "GUESTFS_TEST_ROOT"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func play(role string) error {
	var conn io.ReadWriteCloser
	if role == "pipes" {
		c, err := mux.Stdio()
		if err != nil {
			return err
		}
		conn = c
	} else {
		f := os.NewFile(3, "socket")
		c, err := net.FileConn(f)
		if err != nil {
			return err
		}
		conn = c
	}
	if role == "raw" {
		buf := make([]byte, 16)
		for {
			if _, err := io.ReadFull(conn, buf); err != nil {
				return nil //nolint:nilerr // the end of input
			}
			if _, err := conn.Write(buf); err != nil {
				return err
			}
		}
	}
	if role == "null" {
		return server.Serve(context.Background(), conn, server.Config{Files: nullFiles{}, Build: "test"})
	}
	files, err := local.New(local.Options{Mounts: fsbridge.MountTable{{
		Path: os.Getenv(rootVar), Kind: fsbridge.MountWorkspace,
	}}})
	if err != nil {
		return err
	}
	defer files.Close()
	return server.Serve(context.Background(), conn, server.Config{Files: files, Build: "test"})
}

// startServer runs the test program in a role and returns the connection to it.
func startServer(t testing.TB, role, root string) io.ReadWriteCloser {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // it ends with its connection
	cmd.Env = append(os.Environ(), roleVar+"="+role, rootVar+"="+root)
	cmd.Stderr = os.Stderr
	var conn io.ReadWriteCloser
	if role == "pipes" {
		w, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		conn = mux.Join(r, w)
	} else {
		host, guest := guesttest.SocketPair(t)
		f, err := guest.File()
		if err != nil {
			t.Fatal(err)
		}
		_ = guest.Close()
		cmd.ExtraFiles = []*os.File{f}
		defer f.Close()
		conn = host
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = cmd.Wait()
	})
	return conn
}
