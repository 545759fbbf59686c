package container

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The header of a frame in the stream of an attached container: the number of the stream, three zeros,
// and the length of what follows with the highest byte first.
const (
	frameHeader = 8
	frameStdin  = 0
	frameStdout = 1
	frameStderr = 2
	frameSystem = 3
)

// Attached makes a connection of an attached container's stream, which is in frames in one direction
// and plain in the other. r is where conn is read from, stderr takes the container's error output.
// Engines' clients use it.
func Attached(conn io.WriteCloser, r io.Reader, stderr io.Writer) io.ReadWriteCloser {
	return &attached{conn: conn, r: r, stderr: stderr}
}

// attached is read by one goroutine at a time.
type attached struct {
	conn   io.WriteCloser
	r      io.Reader
	stderr io.Writer

	left  uint32 // of the present frame of standard output
	close sync.Once
	err   error
}

// Read reads the container's standard output.
func (a *attached) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for a.left == 0 {
		if err := a.next(); err != nil {
			return 0, err
		}
	}
	n, err := a.r.Read(p[:min(len(p), int(min(a.left, 1<<30)))])
	a.left -= uint32(n)
	if errors.Is(err, io.EOF) && a.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads a header, and all of a frame that is no standard output.
func (a *attached) next() error {
	var header [frameHeader]byte
	if _, err := io.ReadFull(a.r, header[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(header[4:])
	switch kind := header[0]; {
	case header[1]|header[2]|header[3] != 0 || kind > frameSystem || kind == frameStdin:
		return fmt.Errorf("% x is no header of a container's stream", header)
	case kind == frameStdout:
		a.left = size
		return nil
	case kind == frameSystem:
		text, _ := io.ReadAll(io.LimitReader(a.r, min(int64(size), maxQuote)))
		return fmt.Errorf("the engine says: %s", quote(string(text)))
	default:
		_, err := io.CopyN(a.stderr, a.r, int64(size))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
}

// Write writes to the container's standard input.
func (a *attached) Write(p []byte) (int, error) { return a.conn.Write(p) }

// Close ends the connection, also for who reads.
func (a *attached) Close() error {
	a.close.Do(func() { a.err = a.conn.Close() })
	return a.err
}
