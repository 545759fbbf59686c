package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendString appends a string or bytes.
func AppendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// AppendBool appends a bool.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendStrings appends a list of strings.
func AppendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = AppendString(b, s)
	}
	return b
}

// AppendTime appends a point in time; the zero time stays the zero time.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return AppendBool(b, false)
	}
	b = AppendBool(b, true)
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// Decoder takes values off a payload. After the first malformed value every
// further one is zero, and Err tells what was wrong; so a message is decoded in
// one go and checked once, with Finish.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder decodes b, which must stay unchanged meanwhile.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b} }

// Err returns the first violation.
func (d *Decoder) Err() error { return d.err }

// Finish returns the first violation; bytes left over are one.
func (d *Decoder) Finish() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("%d bytes too many in a message", len(d.b))
	}
	return d.err
}

func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = Violation(format, args...)
	}
	d.b = nil
}

// Uvarint takes an unsigned number.
func (d *Decoder) Uvarint() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 { // most are small
		v := d.b[0]
		d.b = d.b[1:]
		return uint64(v)
	}
	return d.longUvarint()
}

func (d *Decoder) longUvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("malformed number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Varint takes a signed number.
func (d *Decoder) Varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("malformed number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Upto takes an unsigned number of at most limit.
func (d *Decoder) Upto(limit uint64) uint64 {
	v := d.Uvarint()
	if v > limit {
		d.fail("number %d, at most %d is allowed", v, limit)
		return 0
	}
	return v
}

// Size takes a number of bytes or entries: not negative.
func (d *Decoder) Size() int64 { return int64(d.Upto(math.MaxInt64)) }

// Int takes a signed number that fits an int. Limits in options travel so: the
// bridge judges them.
func (d *Decoder) Int() int {
	v := d.Varint()
	if v > math.MaxInt || v < math.MinInt {
		d.fail("number %d does not fit", v)
		return 0
	}
	return int(v)
}

// Uint32 takes a number of 32 bits.
func (d *Decoder) Uint32() uint32 { return uint32(d.Upto(math.MaxUint32)) }

// Byte takes one byte.
func (d *Decoder) Byte() byte {
	if len(d.b) == 0 {
		d.fail("message cut short")
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

// Bool takes a bool.
func (d *Decoder) Bool() bool {
	switch c := d.Byte(); c {
	case 0:
		return false
	case 1:
		return true
	default:
		d.fail("malformed bool %d", c)
		return false
	}
}

// Bytes takes at most limit bytes. They alias the payload.
func (d *Decoder) Bytes(limit int) []byte {
	n := d.Upto(uint64(limit))
	if n > uint64(len(d.b)) {
		d.fail("message cut short")
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// String takes a string of at most limit bytes.
func (d *Decoder) String(limit int) string { return string(d.Bytes(limit)) }

// Rest takes everything that is left. It aliases the payload.
func (d *Decoder) Rest() []byte {
	v := d.b
	d.b = nil
	return v
}

// Left is the number of bytes that were not taken.
func (d *Decoder) Left() int { return len(d.b) }

// More reports whether bytes are left.
func (d *Decoder) More() bool { return len(d.b) > 0 }

// Count takes the length of a list of at most limit elements of at least least
// bytes each; a count the rest of the payload cannot hold is a violation, so a
// slice of that length may be made.
func (d *Decoder) Count(limit, least int) int {
	n := d.Upto(uint64(limit))
	if n*uint64(least) > uint64(len(d.b)) {
		d.fail("list of %d elements in %d bytes", n, len(d.b))
		return 0
	}
	return int(n)
}

// Strings takes a list of at most count strings of at most size bytes each.
func (d *Decoder) Strings(count, size int) []string {
	n := d.Count(count, 1)
	if n == 0 {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		list = append(list, d.String(size))
	}
	if d.err != nil {
		return nil
	}
	return list
}

// Time takes a point in time, in UTC.
func (d *Decoder) Time() time.Time {
	if !d.Bool() {
		return time.Time{}
	}
	sec := d.Varint()
	nsec := d.Upto(999_999_999)
	if d.err != nil {
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}
