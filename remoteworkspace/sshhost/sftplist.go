package sshhost

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// fileInfo is a file of the bridge for the sftp library.
type fileInfo struct{ info fsbridge.FileInfo }

func (i fileInfo) Name() string       { return i.info.Name }
func (i fileInfo) Size() int64        { return i.info.Size }
func (i fileInfo) Mode() fs.FileMode  { return i.info.FSMode() }
func (i fileInfo) ModTime() time.Time { return i.info.ModTime }
func (i fileInfo) IsDir() bool        { return i.info.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Uid() uint32        { return i.info.UID } //nolint:staticcheck // the library's name
func (i fileInfo) Gid() uint32        { return i.info.GID } //nolint:staticcheck // the library's name

// list opens a directory for listing.
func (f *files) list(p string) (*listing, error) {
	if err := f.take(); err != nil {
		return nil, err
	}
	info, err := f.b.Stat(f.ctx, p)
	if err == nil && !info.IsDir() {
		err = &fsbridge.PathError{Op: "list", Path: p, Err: errors.New("not a directory")}
	}
	if err != nil {
		f.give()
		return nil, status(err)
	}
	entries := fsbridge.StreamDirectory(f.ctx, f.b, p)
	if !fsbridge.Has(f.b, fsbridge.CapStreamDirectory) {
		all, err := fsbridge.ReadDirectory(f.ctx, f.b, p)
		if err != nil {
			f.give()
			return nil, status(err)
		}
		entries = func(yield func(fsbridge.DirEntry, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	l := &listing{f: f}
	l.next, l.stop = iter.Pull2(entries)
	return l, nil
}

// listing is an open directory. Its entries are fetched as they are asked for, in order.
type listing struct {
	f    *files
	next func() (fsbridge.DirEntry, error, bool)
	stop func()
	err  error
}

// ListAt continues the listing; the library asks for one part after the other.
func (l *listing) ListAt(to []os.FileInfo, _ int64) (int, error) {
	n := 0
	for n < len(to) && l.err == nil {
		e, err, ok := l.next()
		switch {
		case !ok:
			l.err = io.EOF
		case err != nil:
			l.err = status(err)
		default:
			to[n] = fileInfo{e.Info}
			n++
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, l.err
}

// Close ends the listing.
func (l *listing) Close() error {
	l.stop()
	l.f.give()
	return nil
}
