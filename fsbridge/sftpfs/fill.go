package sftpfs

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// fill gives an empty file its owner, mode and content, and closes it. On an error it may still be open.
func (c *call) fill(f *sftp.File, pl place, r io.Reader, opts fsbridge.WriteOptions) (fsbridge.FileHash, error) {
	mode, err := c.dress(f, pl, opts.Mode)
	if err != nil {
		return fsbridge.FileHash{}, err
	}
	w := &writer{c: c, f: f, sum: sha256.New()}
	err = w.from(r, opts.Size)
	if err == nil {
		err = w.drain(0)
	}
	if err != nil {
		w.drop()
		return fsbridge.FileHash{}, err
	}
	if mode&^fsbridge.ModePerm != 0 { // writing takes these bits away
		if err := prepare(c, func() error { return f.Chmod(fileMode(mode)) }); err != nil {
			return fsbridge.FileHash{}, err
		}
	}
	if opts.Sync {
		if err := prepare(c, f.Sync); err != nil {
			return fsbridge.FileHash{}, err
		}
	}
	if err := prepare(c, f.Close); err != nil {
		return fsbridge.FileHash{}, err
	}
	return fsbridge.FileHash{Digest: fsbridge.DigestOf(w.sum.Sum(nil)), Size: w.off}, nil
}

// dress gives the file the owner of the one it is to replace, where the server lets it, and the mode
// that was asked for or that the old file has. It returns that mode, or zero for what the server has
// given to a new file.
func (c *call) dress(f *sftp.File, pl place, asked fsbridge.Mode) (fsbridge.Mode, error) {
	mode := asked
	if pl.exists {
		i, err := ask(c, f.Stat)
		if err != nil {
			return 0, err
		}
		is, err := infoOf("", i)
		if err != nil {
			return 0, err
		}
		c.keepOwner(f, is, pl.info)
		if mode == 0 {
			mode = pl.info.Mode
		}
	}
	if mode == 0 && !pl.exists {
		return 0, nil
	}
	return mode, prepare(c, func() error { return f.Chmod(fileMode(mode & fsbridge.ModePerm)) })
}

// keepOwner is without error: whether it succeeds depends on the rights of the account.
func (c *call) keepOwner(f *sftp.File, is, was fsbridge.FileInfo) {
	if is.UID == was.UID && is.GID == was.GID {
		return
	}
	err := prepare(c, func() error { return f.Chown(int(was.UID), int(was.GID)) })
	if err != nil && is.GID != was.GID && is.UID != was.UID {
		_ = prepare(c, func() error { return f.Chown(int(is.UID), int(was.GID)) })
	}
}

// writer writes to an open file in order, with several requests under way.
type writer struct {
	c       *call
	f       *sftp.File
	sum     hash.Hash
	off     int64
	pending []*request[[]byte]
	free    [][]byte // chunks that the server has taken
}

// from copies everything that r has, which must be size bytes where size is positive.
func (w *writer) from(r io.Reader, size int64) error {
	for {
		if err := w.c.step(); err != nil {
			return err
		}
		buf := w.buffer()
		n, err := readChunk(r, buf)
		w.sum.Write(buf[:n])
		if size > 0 && (w.off+int64(n) > size || ended(err) && w.off+int64(n) < size) {
			return fmt.Errorf("the content has another size than the announced %d bytes: %w", size, fsbridge.ErrInvalid)
		}
		if err != nil && !ended(err) {
			return &callerError{err}
		}
		if n > 0 {
			if err := w.put(buf[:n]); err != nil {
				return err
			}
		}
		if ended(err) {
			return nil
		}
	}
}

// buffer returns an unused chunk.
func (w *writer) buffer() []byte {
	if n := len(w.free); n > 0 {
		buf := w.free[n-1]
		w.free = w.free[:n-1]
		return buf
	}
	return make([]byte, chunk)
}

// put sends one chunk, after waiting for room in the window.
func (w *writer) put(data []byte) error {
	if err := w.drain(window - 1); err != nil {
		return err
	}
	f, off := w.f, w.off
	req, err := send(w.c, func() ([]byte, error) {
		_, err := f.WriteAt(data, off)
		return data, err
	}, nil)
	if err != nil {
		return err
	}
	w.off += int64(len(data))
	w.pending = append(w.pending, req)
	return nil
}

// drain waits until at most n requests are under way.
func (w *writer) drain(n int) error {
	for len(w.pending) > n {
		data, err := w.pending[0].wait()
		w.pending = w.pending[1:]
		if err != nil {
			return err
		}
		w.free = append(w.free, data[:cap(data)])
	}
	return nil
}

// drop leaves the pending requests to themselves.
func (w *writer) drop() {
	for _, req := range w.pending {
		req.giveUp()
	}
	w.pending = nil
}

// readChunk reads until buf is full or r has no more, and returns r's own error.
func readChunk(r io.Reader, buf []byte) (n int, err error) {
	for idle := 0; n < len(buf) && err == nil; {
		var m int
		m, err = r.Read(buf[n:])
		if n += m; m > 0 {
			idle = 0
		} else if idle++; idle == 100 && err == nil {
			return n, io.ErrNoProgress
		}
	}
	return n, err
}
