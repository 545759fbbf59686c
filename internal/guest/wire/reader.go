package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// readBuffer is large enough to take in a burst of small frames with one system
// call, and small enough that a bulk frame passes it by.
const readBuffer = 32 << 10

// Reader reads frames. It is used by one goroutine at a time.
type Reader struct {
	br *bufio.Reader
	// part is a frame of which have bytes have been read, when reading was
	// interrupted by a deadline.
	part *Frame
	have int
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, readBuffer)}
}

// Next returns the next frame, which the caller then owns. Only io.EOF between
// two frames is io.EOF; a frame cut short is io.ErrUnexpectedEOF, a frame that is
// too long or of an unknown kind an ErrProtocol. After os.ErrDeadlineExceeded the
// next call goes on where this one stopped; after another error there is no next.
func (r *Reader) Next() (*Frame, error) { return r.next(MaxFrame) }

// NextHello is Next with the bound of a hello frame.
func (r *Reader) NextHello() (*Frame, error) { return r.next(MaxHello) }

func (r *Reader) next(limit uint32) (*Frame, error) {
	if r.part == nil {
		if err := r.begin(limit); err != nil {
			return nil, err
		}
	}
	f := r.part
	for r.have < len(f.B) {
		n, err := r.br.Read(f.B[r.have:])
		r.have += n
		switch {
		case err == nil || r.have == len(f.B):
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
	r.part = nil
	return f, nil
}

// begin reads and checks a frame's header, which stays in the buffer, and makes
// room for the frame.
func (r *Reader) begin(limit uint32) error {
	head, err := r.br.Peek(HeaderSize)
	if err != nil {
		if errors.Is(err, io.EOF) && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	n := binary.BigEndian.Uint32(head)
	switch kind := Kind(head[4]); {
	case n < HeaderSize-4:
		return Violation("frame of %d bytes is shorter than its header", n)
	case n > limit:
		return Violation("frame of %d bytes, at most %d are allowed", n, limit)
	case !kind.Valid():
		return Violation("frame of unknown kind %d", head[4])
	}
	r.part, r.have = getFrame(int(n)+4), 0
	r.part.B = r.part.B[:n+4]
	return nil
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
