//go:build linux

package guestfs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
)

// Files go over the connection that there is: nothing is started and nothing listens.
// FSB-02
func TestNoDaemon(t *testing.T) {
	root := t.TempDir()
	conn, err := client.New(t.Context(), startServer(t, "pipes", root), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	br := guestfs.New(conn, guestfs.Options{})
	pids, sockets := descendants(t), listening(t)
	if len(pids) != 1 {
		t.Fatalf("the server is not the only process: %v", pids)
	}
	for i := range 20 {
		name := fmt.Sprintf("d/f%d", i)
		if err := br.WriteFile(t.Context(), name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := br.ReadFile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	w, err := br.Watch(t.Context(), "d", fsbridge.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := descendants(t); !slices.Equal(got, pids) {
		t.Errorf("processes %v became %v", pids, got)
	}
	if got := listening(t); !slices.Equal(got, sockets) {
		t.Errorf("listening sockets %q became %q", sockets, got)
	}
}

// descendants lists the processes below this one.
func descendants(t *testing.T) []string {
	t.Helper()
	var all []string
	for next := []string{"self"}; len(next) > 0; next = next[1:] {
		files, err := filepath.Glob("/proc/" + next[0] + "/task/*/children")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, _ := os.ReadFile(file) // a thread may have ended
			next = append(next, strings.Fields(string(data))...)
			all = append(all, strings.Fields(string(data))...)
		}
	}
	slices.Sort(all)
	return all
}

// listening lists the network's listening sockets that belong to this process or the server.
func listening(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pid := range append(descendants(t), "self") {
		links, err := filepath.Glob("/proc/" + pid + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			target, _ := os.Readlink(link) // it may have been closed
			if inode, ok := strings.CutPrefix(target, "socket:["); ok && listens(t, strings.TrimSuffix(inode, "]")) {
				all = append(all, inode)
			}
		}
	}
	slices.Sort(all)
	return all
}

func listens(t *testing.T, inode string) bool {
	t.Helper()
	const listen = "0A"
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile("/proc/self/net/" + table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f := strings.Fields(string(line))
			if len(f) > 9 && f[3] == listen && f[9] == inode {
				return true
			}
		}
	}
	return false
}
