package wire

import "encoding/binary"

// Kind is the kind of a frame.
type Kind uint8

// The kinds of frames. Which side may send which, and when, is told on the
// screen of package guest.
const (
	KindHello Kind = 1 + iota
	KindOpen
	KindReply
	KindDone
	KindFail
	KindData
	KindEnd
	KindCredit
	KindCancel
)

var kindNames = [...]string{
	KindHello: "hello", KindOpen: "open", KindReply: "reply", KindDone: "done", KindFail: "fail",
	KindData: "data", KindEnd: "end", KindCredit: "credit", KindCancel: "cancel",
}

// String gives the kind's name.
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return "unknown"
}

// Valid reports whether the kind exists.
func (k Kind) Valid() bool { return k >= KindHello && k <= KindCancel }

// The channels of a stream. Client to server: input. Server to client: output
// and, for commands and control calls, error output.
const (
	ChannelIn  uint8 = 0
	ChannelOut uint8 = 1
	ChannelErr uint8 = 2
)

// Frame is one frame in a pooled buffer, header included. It has one owner, who
// hands it on or calls Release.
type Frame struct {
	// B holds the header and what was appended behind it.
	B     []byte
	class int
}

// NewFrame begins a frame with room for size bytes of payload without growing.
func NewFrame(kind Kind, stream uint64, size int) *Frame {
	f := getFrame(HeaderSize + size)
	f.B = f.B[:HeaderSize]
	f.B[4] = byte(kind)
	binary.BigEndian.PutUint64(f.B[5:], stream)
	return f
}

// NewData begins a data frame for one channel.
func NewData(stream uint64, channel uint8, size int) *Frame {
	f := NewFrame(KindData, stream, size+1)
	f.B = append(f.B, channel)
	return f
}

// NewCredit is a complete credit frame.
func NewCredit(stream uint64, channel uint8, n int) *Frame {
	f := NewFrame(KindCredit, stream, 8)
	f.B = binary.AppendUvarint(append(f.B, channel), uint64(n))
	return f
}

// NewEnd is a complete end frame.
func NewEnd(stream uint64, channel uint8) *Frame {
	f := NewFrame(KindEnd, stream, 1)
	f.B = append(f.B, channel)
	return f
}

// Kind returns the frame's kind.
func (f *Frame) Kind() Kind { return Kind(f.B[4]) }

// SetKind changes the frame's kind.
func (f *Frame) SetKind(k Kind) { f.B[4] = byte(k) }

// Stream returns the stream's number.
func (f *Frame) Stream() uint64 { return binary.BigEndian.Uint64(f.B[5:]) }

// SetStream changes the stream's number.
func (f *Frame) SetStream(n uint64) { binary.BigEndian.PutUint64(f.B[5:], n) }

// Payload returns what follows the header. It aliases the frame.
func (f *Frame) Payload() []byte { return f.B[HeaderSize:] }

// Bytes completes the header and returns the frame as it is sent. ok is false
// when the frame is larger than MaxFrame, and must not be sent.
func (f *Frame) Bytes() (b []byte, ok bool) {
	n := len(f.B) - 4
	if n > MaxFrame {
		return nil, false
	}
	binary.BigEndian.PutUint32(f.B, uint32(n))
	return f.B, true
}

// Space returns the unused room behind the frame's bytes, at most limit long. A
// reader fills it and the caller extends B by what was read.
func (f *Frame) Space(limit int) []byte {
	s := f.B[len(f.B):cap(f.B)]
	if len(s) > limit {
		s = s[:limit]
	}
	return s
}

// Release gives the buffer back. Nothing of the frame may be used afterwards.
func (f *Frame) Release() { putFrame(f) }
