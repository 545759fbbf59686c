package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/workberth/workberth/fsbridge"
)

// treeHow tells what tree does.
func treeHow(k kind) string {
	return "1,000 files of 1 KiB in 50 directories: one walk that also hashes every file, and reading every file by 16 readers at " +
		"the same time. Against " + k.choose("the "+k.program("exec")+" program", "a plain `bwrap`") + " that runs `find` with " +
		"`sha256sum`, and one that packs the whole tree with `tar` into a pipe (the cheapest way to get all bytes out at once, with " +
		"no call per file)."
}

const (
	treeDirs    = 50
	treePerDir  = 20
	treeSize    = 1024
	treeReaders = 16
)

// tree measures a tree of small files.
func tree(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	rivals, done, err := b.rivals(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	peer := rivals[0]
	paths, err := plantTree(x.workspace)
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		row        Row
		ours, peer contender
	}{
		{
			row:  Row{Measured: "walk with hashes, 1,000 files"},
			ours: contender{name: "walk", run: func(ctx context.Context) error { return walkTree(ctx, fb) }},
			peer: contender{name: peer.name + ", `find` and `sha256sum`", run: once(func(ctx context.Context) *exec.Cmd {
				return peer.command(ctx, nil, "find", "tree", "-type", "f", "-exec", "sha256sum", "{}", "+")
			})},
		},
		{
			row:  Row{Measured: "read 1,000 files, 16 readers"},
			ours: contender{name: "read", run: func(ctx context.Context) error { return readTree(ctx, fb, paths, treeReaders) }},
			peer: contender{name: peer.name + " and `tar`", run: once(func(ctx context.Context) *exec.Cmd {
				cmd := peer.command(ctx, nil, "tar", "-cf", "-", "tree")
				cmd.Stdout = &counter{}
				return cmd
			})},
		},
	} {
		results, err := race(ctx, b.pick(b.kind().fewer(40, 20), 3), b.pick(3, 1), m.ours, m.peer)
		if err != nil {
			return rows, err
		}
		row, err := compare(m.row, Speed, results[0], results[1])
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// walkTree walks with hashes and wants to see everything.
func walkTree(ctx context.Context, fb fsbridge.Bridge) error {
	hashed := 0
	err := fsbridge.Walk(ctx, fb, "tree", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
		if e.Digest != "" {
			hashed++
		}
		return e.Err
	})
	if err == nil && hashed != treeDirs*treePerDir {
		err = fmt.Errorf("walk hashed %d files", hashed)
	}
	return err
}

// plantTree makes a tree of small files below dir, a directory of this machine, and returns their
// paths in it.
func plantTree(dir string) ([]string, error) { return plant(dir, treeDirs*treePerDir, treeSize) }

// plant makes so many files of that size, each with content of its own, and treePerDir of them in a
// directory.
func plant(dir string, files, size int) (paths []string, err error) {
	content := noise(size)
	for i := range files {
		path := fmt.Sprintf("tree/dir-%02d/file-%02d", i/treePerDir, i%treePerDir)
		full := filepath.Join(dir, path)
		binary.LittleEndian.PutUint64(content, uint64(i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, content, 0o644)); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// readTree reads all files, so many at a time.
func readTree(ctx context.Context, fb fsbridge.Bridge, paths []string, at int) error {
	return each(paths, at, func(name string) error {
		data, err := fb.ReadFile(ctx, name)
		if err == nil && len(data) != treeSize {
			err = fmt.Errorf("%d bytes", len(data))
		}
		return err
	})
}

// each does something with every name, so many at a time.
func each(names []string, at int, do func(name string) error) error {
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		failed = make([]error, at)
	)
	for worker := range at {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				if err := do(names[i]); err != nil {
					failed[worker] = fmt.Errorf("%s: %w", names[i], err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}
