package bridgetest

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// mountChecks prove the mount table and what it means.
func mountChecks() []check {
	need := caps(fsbridge.CapMounts)
	return []check{
		{name: "table", needs: need, run: mountsTable},
		{name: "bind", rows: []string{"C031"}, opts: Options{Bind: true}, run: mountsBind},
		{name: "bind-boundary", opts: Options{Bind: true}, run: mountsBoundary},
		{name: "system", needs: need, run: mountsSystem},
	}
}

// mountsTable looks at the table itself.
func mountsTable(k *kit) {
	t := fsbridge.Mounts(k.b)
	ws, ok := t.Workspace()
	if !ok || ws.Path != k.env.Workspace || ws.ReadOnly {
		k.Errorf("the workspace mount is told as %+v, want %q, writable", ws, k.env.Workspace)
	}
	n := 0
	for _, m := range t {
		if !strings.HasPrefix(m.Path, "/") || path.Clean(m.Path) != m.Path {
			k.Errorf("mount path %q is not absolute and clean", m.Path)
		}
		switch m.Kind {
		case fsbridge.MountWorkspace:
			n++
		case fsbridge.MountBind, fsbridge.MountTmpfs, fsbridge.MountSystem:
		default:
			k.Errorf("mount %q is of unknown kind %q", m.Path, m.Kind)
		}
		if _, err := k.b.Stat(k.ctx, m.Path); err != nil {
			k.Errorf("mount %q: %v", m.Path, err)
		}
	}
	if n != 1 {
		k.Errorf("%d workspace mounts", n)
	}
	if m, _, served := t.Find(k.env.Out); served && m.Kind != fsbridge.MountSystem {
		k.Errorf("OUT lies in mount %+v", m)
	}
	if len(t) > 0 {
		t[0].Path = "/changed"
		if fsbridge.Mounts(k.b)[0].Path == "/changed" {
			k.Error("the caller can change the bridge's own table")
		}
	}
}

// mountsBind works in a second mount, by absolute path and through links both ways.
func mountsBind(k *kit) {
	bind := k.env.Bind
	k.ok("write", k.b.WriteFile(k.ctx, bind+"/a/f", []byte("bound")))
	k.wantContent(bind+"/a/f", "bound")
	got, err := k.b.ReadFile(k.ctx, bind+"/a/f")
	k.ok("read", err)
	if string(got) != "bound" {
		k.Errorf("read %q", got)
	}
	if k.try("l", Node{Type: fsbridge.TypeSymlink, Target: bind + "/a/f"}) {
		k.link("dir", bind)
		k.link(bind+"/back", k.abs("w"))
		k.file("w", "workspace")
		for p, want := range map[string]string{"l": "bound", "dir/a/f": "bound", bind + "/back": "workspace"} {
			got, err := k.b.ReadFile(k.ctx, p)
			k.ok("read "+p, err)
			if string(got) != want {
				k.Errorf("read %q = %q", p, got)
			}
		}
		k.ok("write through a link", k.b.WriteFile(k.ctx, "l", []byte("new")))
		k.wantContent(bind+"/a/f", "new")
		if k.look("l").Type != fsbridge.TypeSymlink {
			k.Error("the link was replaced")
		}
	}
	if k.has(fsbridge.CapRename) {
		k.file("moving", "moved")
		if err := k.mv("moving", bind+"/moved", fsbridge.RenameOptions{}); err == nil {
			k.wantContent(bind+"/moved", "moved")
			k.wantMissing("moving")
		} else {
			k.refused("rename between mounts", err, fsbridge.ErrCrossDevice)
			k.wantContent("moving", "moved")
			k.wantMissing(bind + "/moved")
		}
	}
}

// mountsBoundary: the way from one mount to the other by ".." leads through what is outside.
func mountsBoundary(k *kit) {
	bind := k.env.Bind
	k.file(bind+"/f", "bound")
	k.eachOperation(operations(), func(k *kit, op operation) {
		if op.final == quiet {
			return
		}
		for _, p := range []string{bind + "2/x", path.Dir(bind), bind + "/" + relative(bind, k.env.Out) + "/s"} {
			if k.served(path.Clean(p)) || op.mutates && p == path.Dir(bind) {
				continue // served, or harmful if it were not refused
			}
			_, err := k.do(op, p)
			k.refused(op.name+" "+p, err, fsbridge.ErrOutsideRoot)
		}
		if op.mutates && op.name != "symlink" && op.name != "symlink-replace" && (op.name == "remove-recursive" || op.name == "rename-from") {
			_, err := k.do(op, bind)
			k.refused(op.name+" of a mount point", err)
			k.wantContent(bind+"/f", "bound")
		}
	})
}

// mountsSystem reads the files of the image by their absolute names, and changes none.
func mountsSystem(k *kit) {
	var sys fsbridge.Mount
	for _, m := range fsbridge.Mounts(k.b) {
		if m.Kind == fsbridge.MountSystem {
			sys = m
		}
	}
	if sys.Path == "" {
		k.Skip("this bridge serves no system mount")
	}
	if _, err := k.b.Stat(k.ctx, sys.Path); err != nil {
		k.Errorf("stat %q: %v", sys.Path, err)
	}
	p := strings.TrimSuffix(sys.Path, "/") + "/berth-must-not-exist"
	_, err := k.b.ReadFile(k.ctx, p)
	k.refused("read a missing system file", err, fs.ErrNotExist)
	k.eachOperation(writeOperations(), func(k *kit, op operation) {
		_, err := k.do(op, p)
		switch op.name {
		case "rename-from", "copy-from", "copy-recursive-from", "remove", "remove-recursive", "chmod":
			k.refused(op.name, err, fsbridge.ErrReadOnly, fs.ErrNotExist)
		default:
			k.refused(op.name, err, fsbridge.ErrReadOnly)
		}
		if _, err := k.b.Stat(k.ctx, p); !errors.Is(err, fs.ErrNotExist) {
			k.Errorf("%s: stat: %v", op.name, err)
		}
	})
	k.link("to-system", sys.Path)
	_, err = k.b.Stat(k.ctx, "to-system")
	k.refused("a system file through a link", err, fsbridge.ErrOutsideRoot)
}
