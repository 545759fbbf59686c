package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// finalRule says what an operation does with a symbolic link in the last element of its path.
type finalRule int

const (
	// follows: the link is followed, so a link that leaves must be refused.
	follows finalRule = iota
	// itself: the link itself is meant (or may be), so success is right as long as nothing
	// outside is read or changed.
	itself
	// taken: the operation makes a new name, so a link there is in the way.
	taken
	// quiet: the operation may answer with nothing instead of refusing.
	quiet
)

// operation is one way to use a path. The attack tables run against all of them.
type operation struct {
	name    string
	cap     fsbridge.Capability // empty for the core
	mutates bool
	final   finalRule
	// run does it and returns every byte the bridge gave back that could come from a file.
	run func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error)
}

// operations lists every operation of a bridge that takes a path, in every role a path can play.
func operations() []operation {
	return append(readOperations(), writeOperations()...)
}

func readOperations() []operation {
	return []operation{
		{"stat", "", false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			i, err := b.Stat(ctx, p)
			return []byte(i.Name), err
		}},
		{"read", "", false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return b.ReadFile(ctx, p)
		}},
		{"lstat", fsbridge.CapLstat, false, itself, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			_, err := fsbridge.Lstat(ctx, b, p)
			return nil, err
		}},
		{"read-with-source", fsbridge.CapReadFileWithSource, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			f, err := fsbridge.ReadFileWithSource(ctx, b, p)
			return f.Data, err
		}},
		{"read-range", fsbridge.CapReadRange, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return fsbridge.ReadRange(ctx, b, p, 0, 100)
		}},
		{"open-reader", fsbridge.CapOpenReader, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			r, _, err := fsbridge.OpenReader(ctx, b, p)
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(r)
			return data, errors.Join(err, r.Close())
		}},
		{"list", fsbridge.CapReadDirectory, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			l, err := fsbridge.ReadDirectory(ctx, b, p)
			return entryBytes(l), err
		}},
		{"list-stream", fsbridge.CapStreamDirectory, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			var l []fsbridge.DirEntry
			for e, err := range fsbridge.StreamDirectory(ctx, b, p) {
				if err != nil {
					return entryBytes(l), err
				}
				l = append(l, e)
			}
			return entryBytes(l), nil
		}},
		{"walk", fsbridge.CapWalk, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			var out []byte
			err := fsbridge.Walk(ctx, b, p, fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
				out = append(out, e.Path+"\n"...)
				return nil
			})
			return out, err
		}},
		{"hash", fsbridge.CapHashFile, false, follows, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			h, err := fsbridge.HashFile(ctx, b, p)
			if h.Digest == digest([]byte(k.secret)) {
				return []byte(k.secret), err
			}
			return []byte(h.Digest), err
		}},
		{"glob", fsbridge.CapGlob, false, quiet, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			l, err := fsbridge.Glob(ctx, b, p, fsbridge.GlobOptions{})
			return []byte(strings.Join(l, "\n")), err
		}},
		{"glob-below", fsbridge.CapGlob, false, quiet, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			l, err := fsbridge.Glob(ctx, b, p+"/*", fsbridge.GlobOptions{})
			return []byte(strings.Join(l, "\n")), err
		}},
		{"watch", fsbridge.CapWatch, false, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			w, err := fsbridge.WatchDirectory(ctx, b, p, fsbridge.WatchOptions{})
			if err != nil {
				return nil, err
			}
			return nil, w.Close()
		}},
		{"readlink", fsbridge.CapReadLink, false, itself, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			_, err := fsbridge.ReadLink(ctx, b, p)
			return nil, err
		}},
	}
}

func writeOperations() []operation {
	return []operation{
		{"write", "", true, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, b.WriteFile(ctx, p, []byte("written"))
		}},
		{"write-stream", fsbridge.CapWriteStream, true, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			_, err := fsbridge.WriteStream(ctx, b, p, strings.NewReader("written"), fsbridge.WriteOptions{})
			return nil, err
		}},
		{"create-exclusive", fsbridge.CapCreateFileExclusive, true, taken, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.CreateFileExclusive(ctx, b, p, []byte("written"))
		}},
		{"append", fsbridge.CapAppendFile, true, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.AppendFile(ctx, b, p, []byte("written"))
		}},
		{"mkdir", fsbridge.CapMkdir, true, taken, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Mkdir(ctx, b, p, fsbridge.MkdirOptions{})
		}},
		{"mkdir-parents", fsbridge.CapMkdir, true, taken, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Mkdir(ctx, b, p, fsbridge.MkdirOptions{Parents: true})
		}},
		{"remove", fsbridge.CapRemove, true, itself, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Remove(ctx, b, p, fsbridge.RemoveOptions{})
		}},
		{"remove-recursive", fsbridge.CapRemove, true, itself, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Remove(ctx, b, p, fsbridge.RemoveOptions{Recursive: true})
		}},
		{"rename-from", fsbridge.CapRename, true, itself, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Rename(ctx, b, p, k.fresh("to"), fsbridge.RenameOptions{})
		}},
		{"rename-to", fsbridge.CapRename, true, itself, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Rename(ctx, b, k.freshFile("from"), p, fsbridge.RenameOptions{})
		}},
		{"copy-from", fsbridge.CapCopy, true, follows, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			to := k.fresh("to")
			err := fsbridge.Copy(ctx, b, p, to, fsbridge.CopyOptions{})
			return k.copied(to), err
		}},
		{"copy-recursive-from", fsbridge.CapCopy, true, follows, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			to := k.fresh("to")
			err := fsbridge.Copy(ctx, b, p, to, fsbridge.CopyOptions{Recursive: true})
			return k.copied(to), err
		}},
		{"copy-to", fsbridge.CapCopy, true, itself, func(k *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Copy(ctx, b, k.freshFile("from"), p, fsbridge.CopyOptions{})
		}},
		{"symlink", fsbridge.CapSymlink, true, taken, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Symlink(ctx, b, "anything", p, fsbridge.SymlinkOptions{})
		}},
		{"symlink-replace", fsbridge.CapSymlink, true, itself, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Symlink(ctx, b, "anything", p, fsbridge.SymlinkOptions{Replace: true})
		}},
		{"chmod", fsbridge.CapChmod, true, follows, func(_ *kit, ctx context.Context, b fsbridge.Bridge, p string) ([]byte, error) {
			return nil, fsbridge.Chmod(ctx, b, p, 0o700)
		}},
	}
}

// eachOperation runs fn as a subtest for every operation that the bridge declares.
func (k *kit) eachOperation(ops []operation, fn func(k *kit, op operation)) {
	k.Helper()
	for _, op := range ops {
		if op.cap == "" || k.has(op.cap) {
			k.sub(op.name, func(k *kit) { fn(k, op) })
		}
	}
}

// sub runs fn as a subtest in the same environment.
func (k *kit) sub(name string, fn func(k *kit)) {
	k.Helper()
	sub := *k
	k.Run(name, func(t *testing.T) {
		sub.T = t
		fn(&sub)
	})
}

// do runs the operation and demands that no secret came back, whatever the outcome.
func (k *kit) do(op operation, p string) ([]byte, error) {
	k.Helper()
	got, err := op.run(k, k.ctx, k.b, p)
	if k.leaks(got) {
		k.Errorf("%s %q yielded the secret of OUT", op.name, p)
	}
	return got, err
}

// fresh gives a name that was not used before in this environment.
func (k *kit) fresh(prefix string) string {
	*k.count++
	return fmt.Sprintf("%s-%d", prefix, *k.count)
}

// freshFile makes a file under a fresh name.
func (k *kit) freshFile(prefix string) string {
	k.Helper()
	p := k.fresh(prefix)
	k.file(p, "content of "+p)
	return p
}

// copied gives the content of what a copy has made, names included, for the secret to be looked
// for.
func (k *kit) copied(p string) []byte {
	k.Helper()
	if !k.exists(p) {
		return nil
	}
	switch k.look(p).Type {
	case fsbridge.TypeRegular:
		return k.content(p)
	case fsbridge.TypeDir:
		var out []byte
		for name := range k.names(p) {
			out = append(out, name+"\n"...)
			out = append(out, k.copied(p+"/"+name)...)
		}
		return out
	}
	return nil
}

func entryBytes(l []fsbridge.DirEntry) []byte {
	var out []byte
	for _, e := range l {
		out = append(out, e.Name+"\n"...)
	}
	return out
}
