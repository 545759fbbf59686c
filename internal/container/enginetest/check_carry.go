package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/workberth/workberth/internal/container"
)

// archive makes a tar archive.
func (k *kit) archive(entries ...tar.Header) io.Reader {
	k.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		content := h.PAXRecords["content"]
		h.PAXRecords, h.Size, h.Uid, h.Gid = nil, int64(len(content)), 1234, 2345
		err := w.WriteHeader(&h)
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			k.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		k.Fatal(err)
	}
	return &out
}

// volume makes a volume that is removed with the check.
func (k *kit) volume() string {
	k.Helper()
	name := "enginetest-" + k.word + "-" + slug(k.Name())
	if err := k.engine.CreateVolume(k.ctx, name, map[string]string{label: k.word, "what": slug(k.Name())}); err != nil {
		k.Fatalf("CreateVolume: %v", err)
	}
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := k.engine.RemoveVolume(ctx, name); err != nil {
			k.Errorf("RemoveVolume: %v", err)
		}
	})
	return name
}

// carriedVolumes: a volume is found by name and by labels, is in use as long as a container has it, and
// removing it twice is as good as once.
func carriedVolumes(k *kit) {
	name := k.volume()
	v, err := k.engine.Volume(k.ctx, name)
	if err != nil || v.Name != name || v.Labels[label] != k.word {
		k.Errorf("Volume = %+v, %v", v, err)
	}
	for what, want := range map[string]bool{slug(k.Name()): true, "another": false} {
		found, err := k.engine.Volumes(k.ctx, map[string]string{label: k.word, "what": what})
		if has := slices.ContainsFunc(found, func(v container.Volume) bool { return v.Name == name }); err != nil || has != want {
			k.Errorf("Volumes(%s) = %+v, %v", what, found, err)
		}
	}
	s := k.spec("true")
	s.Mounts = append(s.Mounts, container.Mount{Target: "/vol", Volume: name})
	id := k.create(s)
	k.wantErr("RemoveVolume of one in use", k.engine.RemoveVolume(k.ctx, name), container.ErrConflict)
	k.remove(id)
	for range 2 {
		if err := k.engine.RemoveVolume(k.ctx, name); err != nil {
			k.Errorf("RemoveVolume: %v", err)
		}
	}
	_, err = k.engine.Volume(k.ctx, name)
	k.wantErr("Volume of a removed one", err, container.ErrNotFound)
}

// carriedContent: what is unpacked through a container that never ran is in the volume for others, with
// owner and mode, the volume's root included, and can be read back. Read-only is kept.
func carriedContent(k *kit) {
	name := k.volume()
	filler := k.spec("true")
	filler.ReadOnlyRoot, filler.Mounts = false, []container.Mount{{Target: "/filled", Volume: name}}
	id := k.create(filler)
	text := func(s string) map[string]string { return map[string]string{"content": s} }
	if err := k.engine.Unpack(k.ctx, id, "/", k.archive(tar.Header{Name: "filled/", Typeflag: tar.TypeDir, Mode: 0o750})); err != nil {
		k.Fatalf("Unpack: %v", err)
	}
	if err := k.engine.Unpack(k.ctx, id, "/filled", k.archive(
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o750}, tar.Header{Name: "f", Typeflag: tar.TypeReg, Mode: 0o640, PAXRecords: text("content")},
		tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "f"}, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "f", Mode: 0o640},
	)); err != nil {
		k.Fatalf("Unpack: %v", err)
	}
	r, err := k.engine.Pack(k.ctx, id, "/filled/f")
	if err != nil {
		k.Fatalf("Pack: %v", err)
	}
	defer r.Close()
	t := tar.NewReader(r)
	h, err := t.Next()
	if err != nil {
		k.Fatal(err)
	}
	if got, err := io.ReadAll(t); err != nil || string(got) != "content" || h.Mode&0o777 != 0o640 {
		k.Errorf("Pack: %q, mode %o, %v", got, h.Mode, err)
	}
	_, err = k.engine.Pack(k.ctx, id, "/filled/none")
	k.wantErr("Pack of nothing", err, container.ErrNotFound)
	k.remove(id)
	user := k.spec("cat /vol/l /vol/h && ls -ln /vol/f && ls -ldn /vol && echo x >/vol/new || echo no")
	user.Mounts = append(user.Mounts, container.Mount{Target: "/vol", Volume: name, ReadOnly: true})
	id = k.start(user)
	k.wait(id)
	out := k.output(id)
	for _, want := range []string{"contentcontent", "-rw-r-----    2 1234     2345", "drwxr-x---", "no"} {
		if !strings.Contains(out, want) {
			k.Errorf("no %q in %s", want, out)
		}
	}
}

// carriedStream: an attached container's input and output are the connection's, whatever bytes they are,
// in every life; its error output goes elsewhere, and the engine keeps none of it. The input ends with the
// connection.
func carriedStream(k *kit) {
	s := k.spec("echo oops >&2; exec cat")
	s.Attached = true
	id := k.create(s)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	content := bytes.Repeat(all, 1000)
	for life := range 2 {
		var stderr bytes.Buffer
		conn, err := k.engine.Attach(k.ctx, id, &stderr)
		if err != nil {
			k.Fatalf("Attach: %v", err)
		}
		if err := k.engine.Start(k.ctx, id); err != nil {
			k.Fatal(err)
		}
		go func() { _, _ = conn.Write(append([]byte{0x10, 0x11}, content...)) }()
		got := make([]byte, len(content)+2)
		_, err = io.ReadFull(conn, got)
		if err != nil || !bytes.Equal(got[2:], content) {
			k.Errorf("life %d: %d bytes, %v", life, len(got), err)
		}
		if err := conn.Close(); err != nil {
			k.Error(err)
		}
		if code := k.wait(id); code != 0 {
			k.Errorf("life %d: ended with %d", life, code)
		}
		if stderr.String() != "oops\n" {
			k.Errorf("life %d: its errors are %q", life, stderr.String())
		}
	}
	if text, err := k.engine.Logs(k.ctx, id, 10, time.Time{}); err == nil && len(text) > 0 {
		k.Errorf("the engine keeps %d bytes", len(text))
	}
	_, err := k.engine.Attach(k.ctx, "enginetest-none", io.Discard)
	k.wantErr("Attach to none", err, container.ErrNotFound)
}
