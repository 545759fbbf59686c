//go:build linux

package rooted

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/workberth/workberth/fsbridge"
	"golang.org/x/sys/unix"
)

// Dirent is one name in a directory. Type is TypeUnknown where the file system does not tell.
type Dirent struct {
	Name string
	Type fsbridge.FileType
}

// Dirents reads the entries of a directory in chunks, in the order of the file system, without
// "." and "..".
type Dirents struct {
	fd   int
	buf  []byte
	rest []byte
}

// ReadDir reads from an open directory (see Tree.OpenDir). It uses buf, of at least 4 KiB, until
// the caller is done, and does not close fd.
func ReadDir(fd int, buf []byte) *Dirents { return &Dirents{fd: fd, buf: buf} }

// The layout of struct linux_dirent64.
const (
	direntLen  = 16
	direntType = 18
	direntName = 19
)

// Next returns the next entry, or io.EOF.
func (d *Dirents) Next() (Dirent, error) {
	for {
		if len(d.rest) < direntName {
			n, err := ignoringEINTR(func() (int, error) { return unix.ReadDirent(d.fd, d.buf) })
			if err != nil {
				return Dirent{}, err
			}
			if n <= 0 {
				return Dirent{}, io.EOF
			}
			d.rest = d.buf[:n]
		}
		n := int(binary.NativeEndian.Uint16(d.rest[direntLen:]))
		if n < direntName || n > len(d.rest) {
			return Dirent{}, unix.EIO
		}
		rec := d.rest[:n]
		d.rest = d.rest[n:]
		name := rec[direntName:]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if s := string(name); s != "." && s != ".." {
			return Dirent{Name: s, Type: direntFileType(rec[direntType])}, nil
		}
	}
}

func direntFileType(b byte) fsbridge.FileType {
	if b == unix.DT_UNKNOWN {
		return fsbridge.TypeUnknown
	}
	return fileType(uint32(b) << 12)
}
