package aferofs

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/afero"

	"github.com/workberth/workberth/fsbridge"
)

// directory is an open directory. It is listed once, at the first question; Seek to the start
// lists it anew.
type directory struct {
	handle
	list   []fsbridge.DirEntry
	listed bool
	next   int
}

var (
	_ afero.File     = (*directory)(nil)
	_ fs.ReadDirFile = (*directory)(nil)
)

// page gives the next n entries, or all that are left when n is not positive.
func (d *directory) page(n int) ([]fsbridge.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, d.fail("readdir", err)
	}
	if !d.listed {
		list, err := d.entries()
		if err != nil {
			return nil, d.fail("readdir", err)
		}
		d.list, d.listed = list, true
	}
	left := d.list[d.next:]
	if n > 0 && len(left) == 0 {
		return nil, io.EOF
	}
	if n > 0 && n < len(left) {
		left = left[:n]
	}
	d.next += len(left)
	return left, nil
}

// entries lists the directory by what the bridge can do.
func (d *directory) entries() ([]fsbridge.DirEntry, error) {
	ctx, b := d.fs.ctx, d.fs.b
	if fsbridge.Has(b, fsbridge.CapReadDirectory) || !fsbridge.Has(b, fsbridge.CapStreamDirectory) {
		return fsbridge.ReadDirectory(ctx, b, d.name)
	}
	var list []fsbridge.DirEntry
	for e, err := range fsbridge.StreamDirectory(ctx, b, d.name) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// Readdir lists the directory in pages.
func (d *directory) Readdir(n int) ([]os.FileInfo, error) {
	list, err := d.page(n)
	out := make([]os.FileInfo, 0, len(list))
	for _, e := range list {
		out = append(out, fileInfo{e.Info})
	}
	return out, err
}

// ReadDir lists the directory in pages.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	list, err := d.page(n)
	out := make([]fs.DirEntry, 0, len(list))
	for _, e := range list {
		out = append(out, fs.FileInfoToDirEntry(fileInfo{e.Info}))
	}
	return out, err
}

// Readdirnames lists the names in pages.
func (d *directory) Readdirnames(n int) ([]string, error) {
	list, err := d.page(n)
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out, err
}

// Seek to the start lists the directory anew.
func (d *directory) Seek(offset int64, whence int) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return 0, d.fail("seek", err)
	}
	if offset != 0 || whence != io.SeekStart {
		return 0, d.fail("seek", syscall.EISDIR)
	}
	d.list, d.listed, d.next = nil, false, 0
	return 0, nil
}

// Stat describes the directory as it was opened.
func (d *directory) Stat() (os.FileInfo, error) { return fileInfo{d.info}, nil }

// Close ends the listing.
func (d *directory) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return d.fail("close", err)
	}
	d.closed, d.list = true, nil
	return nil
}

// Sync has nothing to do.
func (d *directory) Sync() error { return nil }

// Read and its kin need a regular file.
func (d *directory) Read([]byte) (int, error)           { return 0, d.fail("read", syscall.EISDIR) }
func (d *directory) ReadAt([]byte, int64) (int, error)  { return 0, d.fail("read", syscall.EISDIR) }
func (d *directory) Write([]byte) (int, error)          { return 0, d.fail("write", syscall.EISDIR) }
func (d *directory) WriteAt([]byte, int64) (int, error) { return 0, d.fail("write", syscall.EISDIR) }
func (d *directory) WriteString(string) (int, error)    { return 0, d.fail("write", syscall.EISDIR) }
func (d *directory) Truncate(int64) error               { return d.fail("truncate", syscall.EISDIR) }
