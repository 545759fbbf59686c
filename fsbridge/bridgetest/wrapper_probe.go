package bridgetest

import (
	"bytes"
	"context"
	"io"
	"iter"

	"github.com/workberth/workberth/fsbridge"
)

// probe is a bridge that does nothing but note what it was asked. Calls come one at a time.
type probe struct {
	seen    []string
	fail    error
	context bool
	denied  fsbridge.Capability
}

var _ fsbridge.Declarer = (*probe)(nil)

func (p *probe) Declares(c fsbridge.Capability) bool { return c != p.denied }

// note records a call and gives the error it is to fail with.
func (p *probe) note(ctx context.Context, name string, args ...any) error {
	p.seen = append(p.seen, saw(name, args...))
	if ctx.Value(contextKey{}) != "marked" {
		p.context = false
	}
	return p.fail
}

// What the operations of a probe give back.
const probeContent = "content of the probe"

func probeInfo() fsbridge.FileInfo {
	return fsbridge.FileInfo{Name: "probe", Type: fsbridge.TypeRegular, Size: 7, Inode: 9}
}

func probeSource() fsbridge.SourcedFile {
	return fsbridge.SourcedFile{Data: []byte(probeContent), ResolvedPath: "/probe", Info: probeInfo()}
}

func probeHash() fsbridge.FileHash { return fsbridge.FileHash{Digest: "d", Size: 3} }

func probeResult() fsbridge.WriteResult {
	return fsbridge.WriteResult{FileHash: probeHash(), Created: true}
}

func probeEntries() []fsbridge.DirEntry {
	return []fsbridge.DirEntry{{Name: "a"}, {Name: "probe", Info: probeInfo()}}
}

func probeMounts() fsbridge.MountTable {
	return fsbridge.MountTable{{Path: "/probe", Kind: fsbridge.MountWorkspace}}
}

func (p *probe) Stat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return probeInfo(), p.note(ctx, "stat", path)
}

func (p *probe) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return []byte(probeContent), p.note(ctx, "read", path)
}

func (p *probe) WriteFile(ctx context.Context, path string, data []byte) error {
	return p.note(ctx, "write", path, string(data))
}

func (p *probe) Lstat(ctx context.Context, path string) (fsbridge.FileInfo, error) {
	return probeInfo(), p.note(ctx, "lstat", path)
}

func (p *probe) ReadFileWithSource(ctx context.Context, path string) (fsbridge.SourcedFile, error) {
	return probeSource(), p.note(ctx, "source", path)
}

func (p *probe) ReadRange(ctx context.Context, path string, off, n int64) ([]byte, error) {
	return []byte(probeContent), p.note(ctx, "range", path, off, n)
}

func (p *probe) OpenReader(ctx context.Context, path string) (io.ReadCloser, fsbridge.FileInfo, error) {
	if err := p.note(ctx, "open", path); err != nil {
		return nil, fsbridge.FileInfo{}, err
	}
	return io.NopCloser(bytes.NewReader([]byte(probeContent))), probeInfo(), nil
}

func (p *probe) WriteStream(ctx context.Context, path string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return fsbridge.WriteResult{}, err
	}
	return probeResult(), p.note(ctx, "write-stream", path, string(data), o)
}

func (p *probe) CreateFileExclusive(ctx context.Context, path string, data []byte) error {
	return p.note(ctx, "create", path, string(data))
}

func (p *probe) AppendFile(ctx context.Context, path string, data []byte) error {
	return p.note(ctx, "append", path, string(data))
}

func (p *probe) Mkdir(ctx context.Context, path string, o fsbridge.MkdirOptions) error {
	return p.note(ctx, "mkdir", path, o)
}

func (p *probe) Remove(ctx context.Context, path string, o fsbridge.RemoveOptions) error {
	return p.note(ctx, "remove", path, o)
}

func (p *probe) Rename(ctx context.Context, from, to string, o fsbridge.RenameOptions) error {
	return p.note(ctx, "rename", from, to, o)
}

func (p *probe) Copy(ctx context.Context, from, to string, o fsbridge.CopyOptions) error {
	return p.note(ctx, "copy", from, to, o)
}

func (p *probe) ReadLink(ctx context.Context, path string) (string, error) {
	return "target", p.note(ctx, "readlink", path)
}

func (p *probe) Symlink(ctx context.Context, target, path string, o fsbridge.SymlinkOptions) error {
	return p.note(ctx, "symlink", target, path, o)
}

func (p *probe) Chmod(ctx context.Context, path string, m fsbridge.Mode) error {
	return p.note(ctx, "chmod", path, m)
}

func (p *probe) ReadDirectory(ctx context.Context, path string) ([]fsbridge.DirEntry, error) {
	return probeEntries(), p.note(ctx, "list", path)
}

func (p *probe) StreamDirectory(ctx context.Context, path string) iter.Seq2[fsbridge.DirEntry, error] {
	return func(yield func(fsbridge.DirEntry, error) bool) {
		if err := p.note(ctx, "list-stream", path); err != nil {
			yield(fsbridge.DirEntry{}, err)
			return
		}
		for _, e := range probeEntries() {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *probe) Walk(ctx context.Context, path string, o fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	if err := p.note(ctx, "walk", path, o); err != nil {
		return err
	}
	return fn(fsbridge.WalkEntry{Path: "a", Info: probeInfo()})
}

func (p *probe) HashFile(ctx context.Context, path string) (fsbridge.FileHash, error) {
	return probeHash(), p.note(ctx, "hash", path)
}

func (p *probe) Glob(ctx context.Context, pattern string, o fsbridge.GlobOptions) ([]string, error) {
	return []string{"a", "b"}, p.note(ctx, "glob", pattern, o)
}

func (p *probe) Watch(ctx context.Context, path string, o fsbridge.WatchOptions) (fsbridge.Watch, error) {
	if err := p.note(ctx, "watch", path, o); err != nil {
		return nil, err
	}
	return probeWatch{}, nil
}

func (p *probe) Mounts() fsbridge.MountTable {
	p.seen = append(p.seen, saw("mounts"))
	return probeMounts()
}

// probeWatch has ended before it began.
type probeWatch struct{}

func (probeWatch) Events() <-chan fsbridge.Event {
	c := make(chan fsbridge.Event, 1)
	c <- fsbridge.Event{Kind: fsbridge.EventCreate, Path: "a"}
	close(c)
	return c
}
func (probeWatch) Err() error   { return nil }
func (probeWatch) Close() error { return nil }

// coreOf hides everything but the core.
func coreOf(p *probe) fsbridge.Bridge { return coreOnly{p} }

// onlyOf has the method of one capability beside the core, and no other.
func onlyOf(p *probe, c fsbridge.Capability) fsbridge.Bridge {
	b := coreOf(p)
	switch c {
	case fsbridge.CapLstat:
		return struct {
			fsbridge.Bridge
			fsbridge.Lstater
		}{b, p}
	case fsbridge.CapReadFileWithSource:
		return struct {
			fsbridge.Bridge
			fsbridge.SourceReader
		}{b, p}
	case fsbridge.CapReadRange:
		return struct {
			fsbridge.Bridge
			fsbridge.RangeReader
		}{b, p}
	case fsbridge.CapOpenReader:
		return struct {
			fsbridge.Bridge
			fsbridge.StreamReader
		}{b, p}
	case fsbridge.CapWriteStream:
		return struct {
			fsbridge.Bridge
			fsbridge.StreamWriter
		}{b, p}
	case fsbridge.CapCreateFileExclusive:
		return struct {
			fsbridge.Bridge
			fsbridge.ExclusiveCreator
		}{b, p}
	case fsbridge.CapAppendFile:
		return struct {
			fsbridge.Bridge
			fsbridge.Appender
		}{b, p}
	case fsbridge.CapMkdir:
		return struct {
			fsbridge.Bridge
			fsbridge.Mkdirer
		}{b, p}
	case fsbridge.CapRemove:
		return struct {
			fsbridge.Bridge
			fsbridge.Remover
		}{b, p}
	case fsbridge.CapRename:
		return struct {
			fsbridge.Bridge
			fsbridge.Renamer
		}{b, p}
	case fsbridge.CapCopy:
		return struct {
			fsbridge.Bridge
			fsbridge.Copier
		}{b, p}
	case fsbridge.CapReadLink:
		return struct {
			fsbridge.Bridge
			fsbridge.LinkReader
		}{b, p}
	case fsbridge.CapSymlink:
		return struct {
			fsbridge.Bridge
			fsbridge.Symlinker
		}{b, p}
	case fsbridge.CapChmod:
		return struct {
			fsbridge.Bridge
			fsbridge.Chmoder
		}{b, p}
	case fsbridge.CapReadDirectory:
		return struct {
			fsbridge.Bridge
			fsbridge.DirReader
		}{b, p}
	case fsbridge.CapStreamDirectory:
		return struct {
			fsbridge.Bridge
			fsbridge.DirStreamer
		}{b, p}
	case fsbridge.CapWalk:
		return struct {
			fsbridge.Bridge
			fsbridge.Walker
		}{b, p}
	case fsbridge.CapHashFile:
		return struct {
			fsbridge.Bridge
			fsbridge.Hasher
		}{b, p}
	case fsbridge.CapGlob:
		return struct {
			fsbridge.Bridge
			fsbridge.Globber
		}{b, p}
	case fsbridge.CapWatch:
		return struct {
			fsbridge.Bridge
			fsbridge.Watcher
		}{b, p}
	case fsbridge.CapMounts:
		return struct {
			fsbridge.Bridge
			fsbridge.Mounter
		}{b, p}
	}
	return b
}
