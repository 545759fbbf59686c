package fsbridge

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ValidPath reports whether p can name a file on any bridge: not empty, no NUL
// byte, at most MaxPath bytes, no element longer than 255 bytes. The error
// matches ErrInvalidPath.
func ValidPath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("empty path: %w", ErrInvalidPath)
	case len(p) > MaxPath:
		return fmt.Errorf("path of %d bytes, at most %d are possible: %w", len(p), MaxPath, ErrInvalidPath)
	case strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("NUL byte in path: %w", ErrInvalidPath)
	}
	for rest := p; rest != ""; {
		var e string
		e, rest, _ = strings.Cut(rest, "/")
		if len(e) > 255 {
			return fmt.Errorf("path element of %d bytes, at most 255 are possible: %w", len(e), ErrInvalidPath)
		}
	}
	return nil
}

// DisplayPath returns a printable, reversible UTF-8 form of p: bytes that are
// not UTF-8 and characters that do not print become \xNN, a backslash becomes
// \\. ParseDisplayPath is its inverse.
func DisplayPath(p string) string {
	clean := true
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		if r == '\\' || r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			clean = false
			break
		}
		i += n
	}
	if clean {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRuneInString(p[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1 || !unicode.IsPrint(r):
			for j := range n {
				fmt.Fprintf(&b, `\x%02x`, p[i+j])
			}
		default:
			b.WriteString(p[i : i+n])
		}
		i += n
	}
	return b.String()
}

// ParseDisplayPath undoes DisplayPath. A malformed escape is an error.
func ParseDisplayPath(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		switch {
		case strings.HasPrefix(s[i:], `\\`):
			b.WriteByte('\\')
			i++
		case strings.HasPrefix(s[i:], `\x`) && i+4 <= len(s):
			hi, ok1 := unhex(s[i+2])
			lo, ok2 := unhex(s[i+3])
			if !ok1 || !ok2 {
				return "", fmt.Errorf("malformed escape at byte %d of %q", i, s)
			}
			b.WriteByte(hi<<4 | lo)
			i += 3
		default:
			return "", fmt.Errorf("malformed escape at byte %d of %q", i, s)
		}
	}
	return b.String(), nil
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
