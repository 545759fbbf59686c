//go:build linux

package local

import (
	"context"
	"io"
	"io/fs"
	"sync"

	"github.com/workberth/workberth/internal/rooted"
)

// reader is a stream over an open file. It is safe for a Close concurrent with a Read.
type reader struct {
	b    *Bridge
	ctx  context.Context // it governs the stream, as the interface says
	path string

	mu sync.Mutex
	fd int // -1 once closed
}

var _ io.ReadCloser = (*reader)(nil)

func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd < 0 {
		return 0, pathError(opRead, r.path, fs.ErrClosed)
	}
	if err := r.b.check(r.ctx); err != nil {
		return 0, pathError(opRead, r.path, err)
	}
	n, err := rooted.Read(r.fd, p)
	if err != nil {
		return 0, pathError(opRead, r.path, err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd < 0 {
		return pathError(opRead, r.path, fs.ErrClosed)
	}
	rooted.Close(r.fd)
	r.fd = -1
	return nil
}
