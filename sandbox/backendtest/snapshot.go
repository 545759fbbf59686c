package backendtest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// snapshot describes every file below a directory of this machine, without the witnesses.
func (k *kit) snapshot(dir string) map[string]string {
	k.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == witnessDir || strings.HasPrefix(rel, witnessDir+"/") {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %.60q", len(data), data)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " -> " + to
		}
		found[rel] = text
		return nil
	})
	k.must(err)
	return found
}

// wantSnapshot demands that a directory is as it was.
func (k *kit) wantSnapshot(when, dir string, was map[string]string) {
	k.Helper()
	is := k.snapshot(dir)
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] != was[name] {
			k.Errorf("%s: %s was %q, is %q", when, name, was[name], is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, old := was[name]; !old {
			k.Errorf("%s: %s appeared: %q", when, name, is[name])
		}
	}
}

// stateSnapshot lists what the backends of the check have stored.
func (k *kit) stateSnapshot() []string {
	k.Helper()
	var names []string
	_ = filepath.WalkDir(k.state, func(p string, e fs.DirEntry, err error) error {
		// The registry's own lock says nothing about a sandbox.
		if err == nil && e.Name() != "lock" {
			names = append(names, p)
		}
		return nil
	})
	return names
}

// wantStateSnapshot demands that nothing was made.
func (k *kit) wantStateSnapshot(was []string) {
	k.Helper()
	for _, p := range k.stateSnapshot() {
		if !slices.Contains(was, p) && p != k.state && p != filepath.Join(k.state, "sandboxes") {
			k.Errorf("made for something that was refused: %s", p)
		}
	}
	if infos, err := k.backend.List(k.ctx); err != nil || len(infos) > 0 {
		k.Errorf("listed after a refusal: %+v, %v", infos, err)
	}
}
