//go:build linux

package rooted

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ways are the ways of resolving that must give the same answers.
func ways() map[string]Options {
	return map[string]Options{
		"kernel":  {},
		"careful": {NoOpenat2: true},
		"no-proc": {NoProc: true},
		"bare":    {NoOpenat2: true, NoProc: true, NoStatx: true, NoTmpfile: true},
	}
}

// tempDir is a temporary directory with its real name.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func open(t testing.TB, how Options, mounts ...fsbridge.Mount) *Tree {
	t.Helper()
	tree, err := Open(mounts, how)
	must(t, err)
	t.Cleanup(tree.Close)
	return tree
}

func workspace(dir string) fsbridge.Mount {
	return fsbridge.Mount{Path: dir, Kind: fsbridge.MountWorkspace}
}

// plant makes files ("name": "content"), directories ("name/": "") and links ("name": "-> text").
func plant(t testing.TB, base string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(base, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case name[len(name)-1] == '/':
			must(t, os.MkdirAll(p, 0o755))
		case len(content) > 3 && content[:3] == "-> ":
			must(t, os.Symlink(content[3:], p))
		default:
			must(t, os.WriteFile(p, []byte(content), 0o644))
		}
	}
}

// openFDs counts the descriptors of this process.
func openFDs(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

func inode(t testing.TB, p string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(p, &st))
	return st.Ino
}
