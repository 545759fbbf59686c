package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// fromImage is a file below a directory that a file system in memory will cover.
const fromImage = "covered/from-image"

// tarFile is an entry of an archive.
type tarFile struct {
	name, link string
	mode       int64
	content    []byte
}

// pack makes an archive.
func pack(files []tarFile) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}
		switch {
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		case f.name[len(f.name)-1] == '/':
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

// staticBusybox reads a busybox that needs no library.
func staticBusybox() ([]byte, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("%s needs libraries", path)
		}
	}
	return os.ReadFile(path)
}

// rootFS makes the root file system of both images.
func rootFS(busybox []byte) ([]byte, error) {
	files := []tarFile{
		{name: "bin/", mode: 0o755},
		{name: "bin/busybox", mode: 0o755, content: busybox},
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/bin/sh\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\n")},
		{name: "covered/", mode: 0o755},
		{name: fromImage, mode: 0o644, content: []byte("x")},
	}
	// Whoever can write here could write below a root that is writable.
	for _, dir := range []string{"open/", "run/", "var/", "var/tmp/", "tmp/", "data/", "home/", "bound/", "mnt/"} {
		files = append(files, tarFile{name: dir, mode: 0o1777})
	}
	for _, applet := range []string{
		"awk", "cat", "chmod", "cp", "dd", "env", "false", "grep", "head", "hostname", "id", "ls", "mkdir", "ps",
		"pwd", "sh", "sleep", "sort", "stat", "tail", "touch", "true", "wc",
	} {
		files = append(files, tarFile{name: "bin/" + applet, link: "busybox"})
	}
	return pack(files)
}

// archive makes what "save" writes: an image of one layer with a configuration.
func archive(name string, layer []byte, config map[string]any) ([]byte, error) {
	sum := sha256.Sum256(layer)
	rawConfig, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "2020-01-02T03:04:05Z", "config": config,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		"history": []any{map[string]any{"created": "2020-01-02T03:04:05Z"}},
	})
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(rawConfig)
	configName := hex.EncodeToString(id[:]) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return pack([]tarFile{
		{name: "layer.tar", mode: 0o644, content: layer},
		{name: configName, mode: 0o644, content: rawConfig},
		{name: "manifest.json", mode: 0o644, content: manifest},
	})
}

// makeImages gives the engine the images of the suite.
func (s *suite) makeImages(ctx context.Context, t *testing.T) {
	t.Helper()
	busybox, err := staticBusybox()
	if err != nil {
		missing(t, fmt.Sprintf("no static busybox (the Debian package is busybox-static): %v", err))
	}
	root, err := rootFS(busybox)
	if err != nil {
		t.Fatal(err)
	}
	plain := "localhost/enginetest-" + s.word + ":plain"
	id, err := s.engine.Import(ctx, plain, bytes.NewReader(root))
	if err != nil {
		t.Fatalf("Import: %v", err)
	}
	s.plain = plain
	if image, err := s.engine.Image(ctx, plain); err != nil || image.ID != id {
		t.Fatalf("Image(%s) = %s, %v; want what Import returned, %s", plain, image.ID, err, id)
	}
	rich := "localhost/enginetest-" + s.word + ":rich"
	packed, err := archive(rich, root, map[string]any{
		"Env":         []string{"PATH=/bin", "FROM_IMAGE=image", "BOTH=image"},
		"Entrypoint":  []string{"/bin/false"},
		"Cmd":         []string{"from-image"},
		"Volumes":     map[string]any{"/data": map[string]any{}},
		"WorkingDir":  "/home",
		"User":        "77:77",
		"Healthcheck": map[string]any{"Test": []string{"CMD", "/bin/false"}, "Interval": 1_000_000_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	names, err := s.engine.Load(ctx, bytes.NewReader(packed))
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	s.rich = rich
	if len(names) != 1 || names[0] != rich {
		t.Fatalf("Load = %q, want %q", names, rich)
	}
}
