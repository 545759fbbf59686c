package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxProfile is the largest profile file, in bytes.
const MaxProfile = 1 << 20

// ParseError says what is wrong with a profile and where.
type ParseError struct {
	// Line of the file, from 1; 0 when the whole file is meant.
	Line int
	Msg  string
}

// Error gives one line.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// at makes a ParseError.
func at(line int, format string, args ...any) error {
	return &ParseError{Line: line, Msg: fmt.Sprintf(format, args...)}
}

// Parse reads a profile in the JSON format of Docker profiles. It is strict where
// engines are lenient, because a slip of the pen in a profile opens a door
// silently: unknown fields and values are errors. Every error is a *ParseError.
//
// As in engines, a rule that names one argument twice is as many rules as it has
// conditions, any of which may match. The fields archMap, architectures, comment
// and flags are accepted and mean nothing here. Actions that need a listener
// (trace, notify) are refused.
func Parse(data []byte) (Policy, error) {
	if len(data) > MaxProfile {
		return Policy{}, at(0, "the profile has %d bytes, at most %d are read", len(data), MaxProfile)
	}
	d := &decoder{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	return d.profile()
}

// decoder reads the outer object field by field, to know the line of each.
type decoder struct {
	data []byte
	dec  *json.Decoder
	// seenOff bytes with seenLines line ends have been looked at.
	seenOff, seenLines int
}

// header are the fields beside the rules.
type header struct {
	action    string
	line      int
	errnoRet  *uint
	errnoName string
}

func (d *decoder) profile() (Policy, error) {
	if err := d.delim('{', "a profile is a JSON object"); err != nil {
		return Policy{}, err
	}
	var (
		h     header
		rules []Rule
		seen  = map[string]bool{}
	)
	for d.dec.More() {
		line := d.line()
		tok, err := d.dec.Token()
		if err != nil {
			return Policy{}, d.wrap(line, err)
		}
		key, _ := tok.(string)
		if seen[key] {
			return Policy{}, at(line, "field %q occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "defaultAction":
			h.line, err = line, d.value(&h.action)
		case "defaultErrnoRet":
			err = d.value(&h.errnoRet)
		case "defaultErrno":
			err = d.value(&h.errnoName)
		case "syscalls":
			rules, err = d.rules()
		case "archMap", "architectures", "flags", "comment":
			var ignored json.RawMessage
			err = d.value(&ignored)
		default:
			err = at(line, "unknown field %q", key)
		}
		if err != nil {
			return Policy{}, err
		}
	}
	if _, err := d.dec.Token(); err != nil {
		return Policy{}, d.wrap(d.line(), err)
	}
	end := d.line()
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, at(end, "something follows the profile")
	}
	if h.action == "" {
		return Policy{}, at(0, `the field "defaultAction" is missing`)
	}
	fallback, err := parseAction(h.line, h.action, h.errnoRet, h.errnoName)
	if err != nil {
		return Policy{}, err
	}
	return Policy{Default: fallback, Rules: rules}, nil
}

// rules reads the array of rules.
func (d *decoder) rules() ([]Rule, error) {
	if err := d.delim('[', `"syscalls" is an array`); err != nil {
		return nil, err
	}
	var rules []Rule
	for d.dec.More() {
		line := d.line()
		var raw json.RawMessage
		if err := d.value(&raw); err != nil {
			return nil, err
		}
		r, err := parseRule(raw, line)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r...)
	}
	_, err := d.dec.Token()
	if err != nil {
		return nil, d.wrap(d.line(), err)
	}
	return rules, nil
}

// delim reads one delimiter.
func (d *decoder) delim(want json.Delim, msg string) error {
	line := d.line()
	tok, err := d.dec.Token()
	if err != nil {
		return d.wrap(line, err)
	}
	if tok != want {
		return at(line, "%s", msg)
	}
	return nil
}

// value reads one value.
func (d *decoder) value(into any) error {
	line := d.line()
	if err := d.dec.Decode(into); err != nil {
		return d.wrap(line, err)
	}
	return nil
}

// line is the line of the next token.
func (d *decoder) line() int {
	off := int(d.dec.InputOffset())
	for off < len(d.data) && strings.IndexByte(" \t\r\n,:", d.data[off]) >= 0 {
		off++
	}
	off = min(off, len(d.data))
	d.seenLines += bytes.Count(d.data[d.seenOff:off], []byte{'\n'})
	d.seenOff = off
	return 1 + d.seenLines
}

// wrap turns an error of encoding/json into one with a line.
func (d *decoder) wrap(line int, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// Between tokens the decoder reports where the previous one ended.
		return at(max(line, lineAt(d.data, int(syntax.Offset)-1)), "%v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at(lineAt(d.data, len(d.data)), "the profile ends too early")
	}
	return at(line, "%s", plain(err))
}

// lineAt is the line, from 1, of a byte offset.
func lineAt(data []byte, off int) int {
	off = max(0, min(off, len(data)))
	return 1 + bytes.Count(data[:off], []byte{'\n'})
}

// plain takes the package's name off an error of encoding/json.
func plain(err error) string {
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		where := typ.Field
		if where == "" {
			where = "the value"
		} else {
			where = fmt.Sprintf("field %q", where)
		}
		return fmt.Sprintf("%s cannot be %s", where, typ.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
