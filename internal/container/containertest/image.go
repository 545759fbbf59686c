package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// wishes is what an image declares for containers of it.
type wishes map[string]any

// addition adds something to a root file system.
type addition func(*rootfs) error

// files adds regular files, executable ones.
func files(contents map[string]string) addition {
	return func(r *rootfs) error {
		for name, content := range contents {
			r.add(tar.Header{Name: name, Mode: 0o755}, []byte(content))
		}
		return nil
	}
}

// layer makes a root file system of the machine's busybox, or of nothing, and what is added to it.
func layer(withBusybox bool, add ...addition) ([]byte, error) {
	var r rootfs
	r.begin()
	for _, dir := range []string{"bin", "etc", "proc", "sys", "dev", "run", "opt", "opt/t"} {
		r.add(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	}
	for _, dir := range []string{"tmp", "vol", "home"} { // whoever runs can write here, if anybody can
		r.add(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	}
	if withBusybox {
		program, err := exec.LookPath("busybox")
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		r.add(tar.Header{Name: "bin/busybox", Mode: 0o755}, content)
		for _, name := range []string{"sh", "cat", "ls", "id", "sleep", "touch", "env", "ps", "grep"} {
			r.add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	for _, f := range add {
		if err := f(&r); err != nil {
			return nil, err
		}
	}
	return r.end()
}

// saved makes what "save" writes: an image of one layer that declares its wishes.
func saved(name string, layer []byte, w wishes) ([]byte, error) {
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": "2020-01-02T03:04:05Z", "config": w,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		"history": []any{map[string]any{"created": "2020-01-02T03:04:05Z"}},
	})
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(config)
	configName := hex.EncodeToString(id[:]) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	var r rootfs
	r.begin()
	r.add(tar.Header{Name: "layer.tar", Mode: 0o644}, layer)
	r.add(tar.Header{Name: configName, Mode: 0o644}, config)
	r.add(tar.Header{Name: "manifest.json", Mode: 0o644}, manifest)
	return r.end()
}

// image brings an image to the engine, for as long as the test takes, and gives its name.
func (k *kit) image(layer []byte, w wishes) string {
	k.Helper()
	name := "localhost/berth-case-" + strings.ToLower(strings.ReplaceAll(k.Name()[strings.LastIndex(k.Name(), "/")+1:], "_", "-")) + ":1"
	k.load(name, layer, w)
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		k.tidy()
		k.untag(ctx, name)
	})
	return name
}

func (k *kit) load(name string, layer []byte, w wishes) {
	k.Helper()
	archive, err := saved(name, layer, w)
	k.must(err)
	_, err = k.engine.Load(k.ctx, bytes.NewReader(archive))
	k.must(err)
}
