package bridgetest

import (
	"context"
	"errors"
	"io"

	"github.com/workberth/workberth/fsbridge"
)

// call is one use of an operation, what the wrapped bridge must see of it, and what must come back.
type call struct {
	name string
	cap  fsbridge.Capability // empty for the core
	seen string
	want any
	do   func(ctx context.Context, b fsbridge.Bridge) (any, error)
}

// calls uses every operation once, with every option set to something.
func calls() []call {
	return append(readCalls(), writeCalls()...)
}

func readCalls() []call {
	walkOpts := fsbridge.WalkOptions{MaxDepth: 3, MaxEntries: 4, Hash: true, SkipDirs: []string{"s"}}
	globOpts := fsbridge.GlobOptions{MaxMatches: 5}
	watchOpts := fsbridge.WatchOptions{Recursive: true, MaxDirs: 6}
	return []call{
		{"stat", "", saw("stat", "p"), probeInfo(), func(ctx context.Context, b fsbridge.Bridge) (any, error) { return b.Stat(ctx, "p") }},
		{"read", "", saw("read", "p"), []byte(probeContent), func(ctx context.Context, b fsbridge.Bridge) (any, error) { return b.ReadFile(ctx, "p") }},
		{"lstat", fsbridge.CapLstat, saw("lstat", "p"), probeInfo(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.Lstat(ctx, b, "p")
		}},
		{"read-with-source", fsbridge.CapReadFileWithSource, saw("source", "p"), probeSource(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.ReadFileWithSource(ctx, b, "p")
		}},
		{"read-range", fsbridge.CapReadRange, saw("range", "p", int64(3), int64(4)), []byte(probeContent), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.ReadRange(ctx, b, "p", 3, 4)
		}},
		{"open-reader", fsbridge.CapOpenReader, saw("open", "p"), []any{probeContent, probeInfo()}, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			r, i, err := fsbridge.OpenReader(ctx, b, "p")
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(r)
			return []any{string(data), i}, errors.Join(err, r.Close())
		}},
		{"readlink", fsbridge.CapReadLink, saw("readlink", "p"), "target", func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.ReadLink(ctx, b, "p")
		}},
		{"list", fsbridge.CapReadDirectory, saw("list", "p"), probeEntries(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.ReadDirectory(ctx, b, "p")
		}},
		{"list-stream", fsbridge.CapStreamDirectory, saw("list-stream", "p"), probeEntries(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			var l []fsbridge.DirEntry
			for e, err := range fsbridge.StreamDirectory(ctx, b, "p") {
				if err != nil {
					return nil, err
				}
				l = append(l, e)
			}
			return l, nil
		}},
		{"walk", fsbridge.CapWalk, saw("walk", "p", walkOpts), []string{"a"}, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			var l []string
			err := fsbridge.Walk(ctx, b, "p", walkOpts, func(e fsbridge.WalkEntry) error {
				l = append(l, e.Path)
				return nil
			})
			return l, err
		}},
		{"hash", fsbridge.CapHashFile, saw("hash", "p"), probeHash(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.HashFile(ctx, b, "p")
		}},
		{"glob", fsbridge.CapGlob, saw("glob", "p*", globOpts), []string{"a", "b"}, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.Glob(ctx, b, "p*", globOpts)
		}},
		{"watch", fsbridge.CapWatch, saw("watch", "p", watchOpts), []string{"a"}, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			w, err := fsbridge.WatchDirectory(ctx, b, "p", watchOpts)
			if err != nil {
				return nil, err
			}
			var l []string
			for e := range w.Events() {
				l = append(l, e.Path)
			}
			return l, w.Close()
		}},
		{"mounts", fsbridge.CapMounts, saw("mounts"), probeMounts(), func(_ context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.Mounts(b), nil
		}},
	}
}

func writeCalls() []call {
	writeOpts := fsbridge.WriteOptions{Mode: 0o640, NoParents: true, Sync: true, Size: 4, If: fsbridge.Precondition{Hash: "h"}}
	removeOpts := fsbridge.RemoveOptions{Recursive: true, IgnoreMissing: true, If: fsbridge.Precondition{Hash: "h"}}
	renameOpts := fsbridge.RenameOptions{NoReplace: true, Parents: true}
	copyOpts := fsbridge.CopyOptions{Recursive: true, NoReplace: true}
	mkdirOpts := fsbridge.MkdirOptions{Parents: true, Mode: 0o750}
	linkOpts := fsbridge.SymlinkOptions{Replace: true}
	none := func(err error) (any, error) { return nil, err }
	return []call{
		{"write", "", saw("write", "p", "data"), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(b.WriteFile(ctx, "p", []byte("data")))
		}},
		{"write-stream", fsbridge.CapWriteStream, saw("write-stream", "p", "data", writeOpts), probeResult(), func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return fsbridge.WriteStream(ctx, b, "p", stringReader("data"), writeOpts)
		}},
		{"create-exclusive", fsbridge.CapCreateFileExclusive, saw("create", "p", "data"), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.CreateFileExclusive(ctx, b, "p", []byte("data")))
		}},
		{"append", fsbridge.CapAppendFile, saw("append", "p", "data"), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.AppendFile(ctx, b, "p", []byte("data")))
		}},
		{"mkdir", fsbridge.CapMkdir, saw("mkdir", "p", mkdirOpts), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Mkdir(ctx, b, "p", mkdirOpts))
		}},
		{"remove", fsbridge.CapRemove, saw("remove", "p", removeOpts), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Remove(ctx, b, "p", removeOpts))
		}},
		{"rename", fsbridge.CapRename, saw("rename", "p", "q", renameOpts), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Rename(ctx, b, "p", "q", renameOpts))
		}},
		{"copy", fsbridge.CapCopy, saw("copy", "p", "q", copyOpts), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Copy(ctx, b, "p", "q", copyOpts))
		}},
		{"symlink", fsbridge.CapSymlink, saw("symlink", "t", "p", linkOpts), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Symlink(ctx, b, "t", "p", linkOpts))
		}},
		{"chmod", fsbridge.CapChmod, saw("chmod", "p", fsbridge.Mode(0o751)), nil, func(ctx context.Context, b fsbridge.Bridge) (any, error) {
			return none(fsbridge.Chmod(ctx, b, "p", 0o751))
		}},
	}
}
