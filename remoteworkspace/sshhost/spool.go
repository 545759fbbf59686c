package sshhost

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// spool bounds what all sftp sessions hold until it is written into a workspace.
type spool struct {
	dir                string
	maxMemory, maxDisk int64
	memory, disk       atomic.Int64
}

func newSpool(dir string, memory, disk int64) *spool {
	return &spool{dir: dir, maxMemory: memory, maxDisk: disk}
}

// errSpoolFull: too much is waiting to be written. The client may try again later.
var errSpoolFull = errors.New("the server holds too much unwritten data now; try again later")

// reserve takes n bytes of a budget.
func reserve(used *atomic.Int64, limit, n int64) bool {
	if used.Add(n) <= limit {
		return true
	}
	used.Add(-n)
	return false
}

// scratch is a file without a name on the server's disk, with the content of one open
// file. It is not safe for concurrent use.
type scratch struct {
	spool *spool
	f     *os.File
	size  int64
	held  int64 // of the disk budget
}

func (s *spool) create() (*scratch, error) {
	f, err := os.CreateTemp(s.dir, "berth-spool-")
	if err != nil {
		return nil, errors.New("the server has no room for random access to files now") // the cause names a path of the host
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, errors.New("the server has no room for random access to files now")
	}
	return &scratch{spool: s, f: f}, nil
}

// grow makes room up to a size.
func (c *scratch) grow(to int64) error {
	if more := to - c.held; more > 0 {
		if !reserve(&c.spool.disk, c.spool.maxDisk, more) {
			return errSpoolFull
		}
		c.held = to
	}
	return nil
}

func (c *scratch) WriteAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if err := c.grow(end); err != nil {
		return 0, err
	}
	n, err := c.f.WriteAt(p, off)
	c.size = max(c.size, off+int64(n))
	return n, hostless(err)
}

func (c *scratch) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.f.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, hostless(err)
}

// fill appends a reader's content.
func (c *scratch) fill(r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := c.WriteAt(buf[:n], c.size); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *scratch) truncate(size int64) error {
	if err := c.grow(size); err != nil {
		return err
	}
	if err := c.f.Truncate(size); err != nil {
		return hostless(err)
	}
	c.size = size
	return nil
}

// content is the whole, from the beginning.
func (c *scratch) content() io.Reader { return io.NewSectionReader(c.f, 0, c.size) }

func (c *scratch) close() {
	c.f.Close()
	c.spool.disk.Add(-c.held)
	c.held = 0
}

// hostless drops the host's path from an error.
func hostless(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("the server's disk: %w", pe.Err)
	}
	return err
}
