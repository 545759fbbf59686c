package wire

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrProtocol is matched by every violation of the protocol. It ends the
// connection: after it nothing the peer says can be trusted.
var ErrProtocol = errors.New("protocol violation")

// ProtocolError says what the peer did that the protocol forbids. It matches
// [ErrProtocol].
type ProtocolError struct{ What string }

// Error gives one line.
func (e *ProtocolError) Error() string { return "protocol violation: " + e.What }

// Is matches ErrProtocol.
func (e *ProtocolError) Is(target error) bool { return target == ErrProtocol }

// Violation makes a ProtocolError. Strings from the peer belong into %q.
func Violation(format string, args ...any) error {
	return &ProtocolError{What: fmt.Sprintf(format, args...)}
}

// Printable makes text of a peer fit for a log or a terminal: at most limit
// bytes, valid UTF-8, no control characters except that line ends become spaces.
// What was left out is marked with "...".
func Printable(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
	}
	clean := !cut
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			if t := b.String(); t != "" && t[len(t)-1] != ' ' {
				b.WriteByte(' ')
			}
		case r == utf8.RuneError && n <= 1 || !unicode.IsPrint(r):
			for j := range n {
				fmt.Fprintf(&b, `\x%02x`, s[i+j])
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	out := strings.TrimRight(b.String(), " ")
	if cut {
		out += "..."
	}
	return out
}
