//go:build linux

package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

// checkEvery is how many directory entries are read between two looks at the guard.
const checkEvery = 256

// ReadDirectory implements fsbridge.DirReader. Keeps FSB-07.
func (b *Bridge) ReadDirectory(ctx context.Context, path string) ([]fsbridge.DirEntry, error) {
	if err := b.begin(ctx, opList, path); err != nil {
		return nil, err
	}
	defer b.end()
	list, err := b.sortedEntries(ctx, path)
	return list, pathError(opList, path, err)
}

// sortedEntries describes the entries of a directory in the order of their names. Names are sorted
// before they are looked at, which moves less than sorting descriptions.
func (b *Bridge) sortedEntries(ctx context.Context, path string) ([]fsbridge.DirEntry, error) {
	fd, err := b.openToList(path)
	if err != nil {
		return nil, err
	}
	defer rooted.Close(fd)
	var names []string
	err = b.eachName(ctx, fd, func(name string) error {
		if len(names) == b.entries {
			return hint(&fsbridge.LimitError{What: "directory entries", Limit: int64(b.entries)},
				"list it as a stream")
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]fsbridge.DirEntry, 0, len(names))
	for i, name := range names {
		if (i+1)%checkEvery == 0 {
			if err := b.check(ctx); err != nil {
				return nil, err
			}
		}
		e, err := b.entry(fd, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// errStop ends an iteration that the caller has had enough of.
var errStop = errors.New("stop")

// StreamDirectory implements fsbridge.DirStreamer.
func (b *Bridge) StreamDirectory(ctx context.Context, path string) iter.Seq2[fsbridge.DirEntry, error] {
	return func(yield func(fsbridge.DirEntry, error) bool) {
		if err := b.begin(ctx, opList, path); err != nil {
			yield(fsbridge.DirEntry{}, err)
			return
		}
		defer b.end()
		err := b.eachEntry(ctx, path, func(e fsbridge.DirEntry) error {
			if !yield(e, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && err != errStop {
			yield(fsbridge.DirEntry{}, pathError(opList, path, err))
		}
	}
}

// eachEntry describes the entries of a directory in the order of the file system.
func (b *Bridge) eachEntry(ctx context.Context, path string, f func(fsbridge.DirEntry) error) error {
	fd, err := b.openToList(path)
	if err != nil {
		return err
	}
	defer rooted.Close(fd)
	return b.eachName(ctx, fd, func(name string) error {
		e, err := b.entry(fd, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since
		}
		if err != nil {
			return err
		}
		return f(e)
	})
}

// openToList opens a directory.
func (b *Bridge) openToList(path string) (int, error) {
	h, err := b.tree.Open(path, rooted.Directory)
	if err != nil {
		return -1, err
	}
	defer h.Close()
	return b.tree.OpenDir(&h)
}

// eachName calls f for each name in an open directory, but for those of temporary files.
func (b *Bridge) eachName(ctx context.Context, fd int, f func(name string) error) error {
	buf := b.tree.Buffer()
	defer b.tree.Release(buf)
	dir := rooted.ReadDir(fd, *buf)
	for n := 1; ; n++ {
		d, err := dir.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n%checkEvery == 0 {
			if err := b.check(ctx); err != nil {
				return err
			}
		}
		if b.names.Ours(d.Name) {
			continue
		}
		if err := f(d.Name); err != nil {
			return err
		}
	}
}

// entry describes one name in an open directory. A name that changes its meaning between the two
// looks a link needs is looked at again.
func (b *Bridge) entry(dir int, name string) (fsbridge.DirEntry, error) {
	for range rooted.Attempts {
		st, err := b.tree.Lstat(dir, name)
		if err != nil {
			return fsbridge.DirEntry{}, err
		}
		e := fsbridge.DirEntry{Name: name, Info: st.FileInfo}
		e.Info.Name = name
		if st.Type != fsbridge.TypeSymlink {
			return e, nil
		}
		e.LinkTarget, err = rooted.Readlink(dir, name)
		switch err {
		case nil:
			return e, nil
		case unix.EINVAL, unix.ENOENT:
		default:
			return fsbridge.DirEntry{}, err
		}
	}
	return fsbridge.DirEntry{}, rooted.ErrBusy
}
