package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// readBuffer is large enough to take in a burst of small frames with one system
// call, and small enough that a bulk frame passes it by.
const readBuffer = 32 << 10

// Reader reads frames. It is used by one goroutine.
type Reader struct{ br *bufio.Reader }

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, readBuffer)}
}

// Next returns the next frame, which the caller then owns. Only io.EOF between
// two frames is io.EOF; a frame cut short is io.ErrUnexpectedEOF, a frame that is
// too long or of an unknown kind an ErrProtocol.
func (r *Reader) Next() (*Frame, error) { return r.next(MaxFrame) }

// NextHello is Next with the bound of a hello frame.
func (r *Reader) NextHello() (*Frame, error) { return r.next(MaxHello) }

func (r *Reader) next(limit uint32) (*Frame, error) {
	head, err := r.br.Peek(HeaderSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	switch kind := Kind(head[4]); {
	case n < HeaderSize-4:
		return nil, Violation("frame of %d bytes is shorter than its header", n)
	case n > limit:
		return nil, Violation("frame of %d bytes, at most %d are allowed", n, limit)
	case !kind.Valid():
		return nil, Violation("frame of unknown kind %d", head[4])
	}
	f := getFrame(int(n) + 4)
	f.B = f.B[:n+4]
	if _, err := io.ReadFull(r.br, f.B); err != nil {
		f.Release()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return f, nil
}

// Buffered returns how many bytes have arrived behind the last frame.
func (r *Reader) Buffered() int { return r.br.Buffered() }

// SkipTo reads up to and including magic. It returns what came before it, at most
// the first MaxQuote bytes, also with an error. More than limit bytes without the
// magic are an error.
func (r *Reader) SkipTo(magic string, limit int) (before []byte, err error) {
	matched := 0
	for n := 0; n < limit+len(magic); n++ {
		c, err := r.br.ReadByte()
		if err != nil {
			return before, err
		}
		if c == magic[matched] {
			if matched++; matched == len(magic) {
				return before, nil
			}
			continue
		}
		// The magic's first byte occurs in it only once, so a failed match can
		// begin again only at the byte that broke it.
		broken := magic[:matched]
		if matched = 0; c == magic[0] {
			matched = 1
		} else {
			broken += string([]byte{c})
		}
		if room := MaxQuote - len(before); room > 0 {
			before = append(before, broken[:min(room, len(broken))]...)
		}
	}
	return before, fmt.Errorf("no greeting within %d bytes", limit)
}
