package bridgetest

import (
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// modeChecks prove permissions: of new files, of replaced ones, and as asked. C033 C041
func modeChecks() []check {
	list := []check{
		{name: "kept-on-replace", rows: []string{"C033"}, run: modeKept},
		{name: "owner-kept", rows: []string{"C033"}, run: modeOwner},
		{name: "asked", rows: []string{"C041"}, needs: caps(fsbridge.CapWriteStream), run: modeAsked},
		{name: "set-id", rows: []string{"C041"}, needs: caps(fsbridge.CapWriteStream), run: modeSetID},
		{name: "chmod", rows: []string{"C041"}, needs: caps(fsbridge.CapChmod), run: modeChmod},
	}
	for _, mask := range []fsbridge.Mode{0o022, 0o002, 0o077} {
		list = append(list, check{
			name: fmt.Sprintf("umask-%03o", mask), rows: []string{"C033"}, opts: Options{Umask: mask},
			run: func(k *kit) { modeUmask(k, mask) },
		})
	}
	return list
}

// wantMode demands the permission of the file at p.
func (k *kit) wantMode(what, p string, want fsbridge.Mode) {
	k.Helper()
	if n := k.look(p); n.Mode != want {
		k.Errorf("%s: %q has mode %04o, want %04o", what, p, n.Mode, want)
	}
	i, err := k.b.Stat(k.ctx, p)
	k.ok("stat "+p, err)
	if i.Mode != want {
		k.Errorf("%s: stat %q tells mode %04o, want %04o", what, p, i.Mode, want)
	}
}

// modeUmask makes new files and directories in every way there is. C033
func modeUmask(k *kit, mask fsbridge.Mode) {
	file, dir := 0o666&^mask, 0o777&^mask
	k.ok("write", k.b.WriteFile(k.ctx, "p1/p2/f", []byte("x")))
	k.wantMode("write", "p1/p2/f", file)
	k.wantMode("write", "p1", dir)
	k.wantMode("write", "p1/p2", dir)
	if k.has(fsbridge.CapWriteStream) {
		_, err := fsbridge.WriteStream(k.ctx, k.b, "s", stringReader("x"), fsbridge.WriteOptions{})
		k.ok("write-stream", err)
		k.wantMode("write-stream", "s", file)
	}
	if k.has(fsbridge.CapCreateFileExclusive) {
		k.ok("create", fsbridge.CreateFileExclusive(k.ctx, k.b, "q/c", []byte("x")))
		k.wantMode("create", "q/c", file)
		k.wantMode("create", "q", dir)
	}
	if k.has(fsbridge.CapAppendFile) {
		k.ok("append", fsbridge.AppendFile(k.ctx, k.b, "a", []byte("x")))
		k.wantMode("append", "a", file)
	}
	if k.has(fsbridge.CapMkdir) {
		k.ok("mkdir", fsbridge.Mkdir(k.ctx, k.b, "m/n", fsbridge.MkdirOptions{Parents: true}))
		k.wantMode("mkdir", "m", dir)
		k.wantMode("mkdir", "m/n", dir)
	}
	if k.has(fsbridge.CapCopy) {
		k.make("orig", Node{Type: fsbridge.TypeRegular, Mode: 0o755, Data: []byte("x")})
		k.ok("copy", fsbridge.Copy(k.ctx, k.b, "orig", "copied", fsbridge.CopyOptions{}))
		if n := k.look("copied"); n.Mode&0o100 == 0 {
			k.Errorf("copy lost the exec bit: mode %04o", n.Mode)
		}
	}
}

// modeKept replaces files of many modes; each keeps its own. C033
func modeKept(k *kit) {
	for _, m := range []fsbridge.Mode{0o644, 0o755, 0o640, 0o600, 0o700, 0o664, 0o666, 0o777, 0o604, 0o711} {
		p := fmt.Sprintf("f%o", m)
		k.make(p, Node{Type: fsbridge.TypeRegular, Mode: m, Data: []byte("old")})
		k.ok("write", k.b.WriteFile(k.ctx, p, []byte("new")))
		k.wantContent(p, "new")
		k.wantMode("write", p, m)
		if k.has(fsbridge.CapWriteStream) {
			_, err := fsbridge.WriteStream(k.ctx, k.b, p, stringReader("newer"), fsbridge.WriteOptions{})
			k.ok("write-stream", err)
			k.wantMode("write-stream", p, m)
		}
	}
}

// modeOwner replaces a file of someone else: it keeps its owner and group, where the bridge's
// process may set them, which is taken to be so when its own files belong to root. A target whose
// root has no such right waives this.
func modeOwner(k *kit) {
	k.ok("write", k.b.WriteFile(k.ctx, "own", []byte("x")))
	if n := k.look("own"); n.UID != 0 {
		k.Skipf("the bridge's process is user %d, who cannot give files away", n.UID)
	}
	k.make("f", Node{Type: fsbridge.TypeRegular, Mode: 0o640, UID: 4242, GID: 4243, Data: []byte("old")})
	if n := k.look("f"); n.UID != 4242 {
		k.Skip("this environment's files have no owners")
	}
	for range 2 {
		k.ok("write", k.b.WriteFile(k.ctx, "f", []byte("new")))
		if n := k.look("f"); n.UID != 4242 || n.GID != 4243 || n.Mode != 0o640 {
			k.Errorf("the file belongs to %d:%d with mode %04o, want 4242:4243 and 0640", n.UID, n.GID, n.Mode)
		}
	}
	i, err := k.b.Stat(k.ctx, "f")
	k.ok("stat", err)
	if i.UID != 4242 || i.GID != 4243 {
		k.Errorf("stat tells owner %d:%d", i.UID, i.GID)
	}
}

// modeAsked asks for modes; the umask does not take from them. C041
func modeAsked(k *kit) {
	for _, m := range []fsbridge.Mode{0o644, 0o755, 0o600, 0o666, 0o777, 0o400, 0o640} {
		p := fmt.Sprintf("d/f%o", m)
		for range 2 { // a new file, then an existing one
			_, err := fsbridge.WriteStream(k.ctx, k.b, p, stringReader("x"), fsbridge.WriteOptions{Mode: m})
			k.ok("write-stream", err)
			k.wantMode("write-stream", p, m)
		}
		_, err := fsbridge.WriteStream(k.ctx, k.b, p, stringReader("y"), fsbridge.WriteOptions{Mode: 0o600})
		k.ok("write-stream", err)
		k.wantMode("write-stream", p, 0o600)
	}
	for _, m := range []fsbridge.Mode{0o10000, 0o100644, 1 << 31} {
		_, err := fsbridge.WriteStream(k.ctx, k.b, "bad", stringReader("x"), fsbridge.WriteOptions{Mode: m, AllowSetID: true})
		k.refused("mode with unknown bits", err, fsbridge.ErrInvalid)
		k.wantMissing("bad")
	}
}

// modeSetID asks for set-id and sticky bits, without and with permission. C041
func modeSetID(k *kit) {
	for _, m := range []fsbridge.Mode{0o4755, 0o2755, 0o1644, 0o7777, 0o4000} {
		_, err := fsbridge.WriteStream(k.ctx, k.b, "f", stringReader("x"), fsbridge.WriteOptions{Mode: m})
		k.refused(fmt.Sprintf("mode %04o", m), err, fsbridge.ErrInvalid)
		k.wantMissing("f")
	}
	_, err := fsbridge.WriteStream(k.ctx, k.b, "f", stringReader("x"), fsbridge.WriteOptions{Mode: 0o4755, AllowSetID: true})
	k.ok("set-id, permitted", err)
	k.wantMode("set-id, permitted", "f", 0o4755)
}

func modeChmod(k *kit) {
	k.file("f", "x")
	k.dir("d")
	for _, m := range []fsbridge.Mode{0o600, 0o755, 0o644, 0o777, 0o400, 0o000, 0o640} {
		for _, p := range []string{"f", "d"} {
			k.ok("chmod", fsbridge.Chmod(k.ctx, k.b, p, m))
			k.wantMode("chmod", p, m)
		}
	}
	for _, m := range []fsbridge.Mode{0o4755, 0o2755, 0o1777, 0o10644, 1 << 31} {
		for _, p := range []string{"f", "d"} {
			k.refused(fmt.Sprintf("chmod %o", m), fsbridge.Chmod(k.ctx, k.b, p, m), fsbridge.ErrInvalid)
			k.wantMode("a refused chmod", p, 0o640)
		}
	}
	k.ok("chmod", fsbridge.Chmod(k.ctx, k.b, "d", 0o755))
	k.wantContent("f", "x")
}
