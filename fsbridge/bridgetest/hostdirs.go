package bridgetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// HostDirs are the host directories of one environment whose files lie on this machine.
type HostDirs struct {
	// Root is the temporary directory that holds the others.
	Root string
	// Workspace, Out, Second and Bind are as in Environment, as host paths. Second and Bind are
	// empty unless asked for.
	Workspace, Out, Second, Bind string
}

// NewHostDirs makes the directories that o asks for, and file systems for DiskSize and Second. It
// skips the test where that needs rights the process does not have. Everything ends with t.
func NewHostDirs(t testing.TB, o Options) HostDirs {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatalf("temporary directory: %v", err)
	}
	// The parent must be searchable for helpers that run as another user.
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatalf("temporary directory: %v", err)
	}
	d := HostDirs{Root: root, Workspace: filepath.Join(root, "ws"), Out: filepath.Join(root, "out")}
	mkdir := func(p string) {
		t.Helper()
		if err := os.Mkdir(p, 0o755); err != nil {
			t.Fatalf("make directory: %v", err)
		}
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatalf("make directory: %v", err)
		}
	}
	mkdir(d.Workspace)
	mkdir(d.Out)
	if o.DiskSize > 0 {
		mountScratch(t, d.Workspace, o.DiskSize)
	}
	if o.Second {
		d.Second = filepath.Join(d.Workspace, "m")
		mkdir(d.Second)
		mountScratch(t, d.Second, 64<<20)
	}
	if o.Bind {
		d.Bind = filepath.Join(root, "bind")
		mkdir(d.Bind)
	}
	return d
}

// Mounts is the mount table of a bridge that serves the directories under their host paths. Second
// is not in it: that another file system lies in the workspace is for the bridge to notice.
func (d HostDirs) Mounts(o Options) fsbridge.MountTable {
	t := fsbridge.MountTable{{
		Path: d.Workspace, HostPath: d.Workspace, Kind: fsbridge.MountWorkspace, ReadOnly: o.ReadOnly,
	}}
	if d.Bind != "" {
		t = append(t, fsbridge.Mount{Path: d.Bind, HostPath: d.Bind, Kind: fsbridge.MountBind})
	}
	return t
}

// Environment is the environment of a bridge that serves the directories under their host paths.
func (d HostDirs) Environment(b fsbridge.Bridge) *Environment {
	return &Environment{
		Bridge: b, Oracle: HostOracle{d.Root: d.Root},
		Workspace: d.Workspace, Out: d.Out, Second: d.Second, Bind: d.Bind,
	}
}
