package libpod

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Logs returns the last lines that the container's first process wrote. They are counted here:
// the engine counts the parts of a long line, and loses line ends.
func (c *Client) Logs(ctx context.Context, id string, lines int, since time.Time) ([]byte, error) {
	query := url.Values{"stdout": {"true"}, "stderr": {"true"}}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339Nano))
	}
	r, err := onContainer("read the logs of", http.MethodGet, id, "/logs", query)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	text, err := demultiplex(a.body, maxAnswer)
	var fault *streamError
	switch {
	case err == nil:
		return lastLines(text, lines), nil
	case errors.As(err, &fault):
		return nil, senseless(r.op, err)
	default:
		return nil, c.fault(a.ctx, r.op, err)
	}
}

// lastLines returns the last lines of a text; the last of them need not end.
func lastLines(text []byte, lines int) []byte {
	if lines <= 0 {
		return nil
	}
	start := len(bytes.TrimSuffix(text, []byte("\n")))
	for range lines {
		if start = bytes.LastIndexByte(text[:start], '\n'); start < 0 {
			return text
		}
	}
	return text[start+1:]
}

// streamError says what is wrong with a multiplexed stream.
type streamError struct{ text string }

func (e *streamError) Error() string { return e.text }

// headerSize is that of a frame's header, and lastStream the highest number of a stream.
const (
	headerSize = 8
	lastStream = 3
)

// demultiplex joins the frames of a stream, of at most limit bytes. A frame has a header of eight
// bytes: the number of its stream, three zeros, and its length with the highest byte first.
func demultiplex(from io.Reader, limit int64) ([]byte, error) {
	var out bytes.Buffer
	var header [headerSize]byte
	for {
		if _, err := io.ReadFull(from, header[:]); errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		} else if err != nil {
			return nil, err
		}
		size := int64(binary.BigEndian.Uint32(header[4:]))
		if header[0] > lastStream || header[1]|header[2]|header[3] != 0 {
			return nil, &streamError{fmt.Sprintf("% x is no header of a stream", header)}
		}
		if size > limit-int64(out.Len()) {
			return nil, &streamError{errTooLong.Error()}
		}
		if n, err := io.CopyN(&out, from, size); err != nil {
			if errors.Is(err, io.EOF) && n < size {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
