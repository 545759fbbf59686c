//go:build linux

package local

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

// ways are the ways of working that must give the same answers.
func ways() map[string]rooted.Options {
	return map[string]rooted.Options{
		"kernel":     {},
		"careful":    {NoOpenat2: true},
		"no-tmpfile": {NoTmpfile: true},
		"no-statx":   {NoStatx: true},
		"no-proc":    {NoProc: true},
		"bare":       {NoOpenat2: true, NoProc: true, NoTmpfile: true, NoStatx: true},
	}
}

// eachWay runs a test once per way, in a fresh directory with WS and OUT in it.
func eachWay(t *testing.T, f func(t *testing.T, d *dirs)) {
	t.Helper()
	for name, how := range ways() {
		t.Run(name, func(t *testing.T) { f(t, newDirs(t, how)) })
	}
}

// dirs is a workspace, a directory beside it that must never change, and a bridge.
type dirs struct {
	t       *testing.T
	ws, out string
	how     rooted.Options
	b       *Bridge
}

func newDirs(t *testing.T, how rooted.Options) *dirs {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	d := &dirs{t: t, ws: filepath.Join(base, "ws"), out: filepath.Join(base, "out"), how: how}
	must(t, os.Mkdir(d.ws, 0o755))
	must(t, os.Mkdir(d.out, 0o755))
	d.b = d.bridge(Options{Mounts: fsbridge.MountTable{{Path: d.ws, Kind: fsbridge.MountWorkspace}}})
	return d
}

// bridge makes a further bridge the same way.
func (d *dirs) bridge(opts Options) *Bridge {
	d.t.Helper()
	b, err := newBridge(opts, d.how)
	must(d.t, err)
	d.t.Cleanup(func() { must(d.t, b.Close()) })
	return b
}

// in and at give paths in WS and OUT; put and get write and read files there, past the bridge.
func (d *dirs) in(p string) string { return filepath.Join(d.ws, p) }
func (d *dirs) at(p string) string { return filepath.Join(d.out, p) }

func (d *dirs) put(p, content string) {
	d.t.Helper()
	must(d.t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(d.t, os.WriteFile(p, []byte(content), 0o644))
}

func (d *dirs) get(p string) string {
	d.t.Helper()
	data, err := os.ReadFile(p)
	must(d.t, err)
	return string(data)
}

func (d *dirs) link(text, p string) {
	d.t.Helper()
	must(d.t, os.MkdirAll(filepath.Dir(p), 0o755))
	must(d.t, os.Symlink(text, p))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// root skips what needs root, unless everything is required.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, "needs root")
	}
}

// missing skips a test that this machine cannot run, or fails it where everything is required.
func missing(t *testing.T, why string, args ...any) {
	t.Helper()
	if os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		t.Fatalf(why, args...)
	}
	t.Skipf(why, args...)
}

func hashOf(s string) fsbridge.Digest {
	sum := sha256.Sum256([]byte(s))
	return fsbridge.DigestOf(sum[:])
}

// shape describes a tree: names, types, modes, sizes, contents.
func shape(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		sum := ""
		if e.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			sum = string(hashOf(string(data)))[:8]
		}
		fmt.Fprintf(&b, "%s %s %s\n", strings.TrimPrefix(p, dir), st.Mode(), sum)
		return nil
	}))
	return b.String()
}

// noTemps demands that no temporary file is left below dir.
func noTemps(t testing.TB, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), ".berth-") {
			t.Errorf("%s was left", p)
		}
		return err
	}))
}

// openFDs counts the descriptors of this process.
func openFDs(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// readerFunc is a reader.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var errEOF = io.EOF
