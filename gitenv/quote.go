package gitenv

import (
	"errors"
	"fmt"
	"strings"
)

// A Pair is one configuration setting.
type Pair struct {
	// Key is section.name or section.subsection.name; see [CanonicalKey].
	Key string
	// Value is any sequence of bytes but NUL. It is a Go string for convenience, not necessarily UTF-8.
	Value string
	// Valueless means that the key stands alone, as in a configuration line without "=". Git reads it as true; that
	// differs from the empty value, which git reads as false. Value must be empty then.
	Valueless bool
}

// Quote encloses s in single quotes as git does: a quote and an exclamation mark leave the quotes and are escaped with
// a backslash, everything else stands for itself. Git and a POSIX shell read the result back as s. The error matches
// [ErrNUL]: no environment variable and no argument can hold a NUL byte.
func Quote(s string) (string, error) {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return "", fmt.Errorf("gitenv: cannot quote: %w at byte %d", ErrNUL, i)
	}
	var b strings.Builder
	b.Grow(len(s) + 2)
	writeQuoted(&b, s)
	return b.String(), nil
}

// writeQuoted appends the quoted form of s, which holds no NUL.
func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('\'')
	for {
		i := strings.IndexAny(s, "'!")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		b.WriteString(`'\`)
		b.WriteByte(s[i])
		b.WriteByte('\'')
		s = s[i+1:]
	}
	b.WriteString(s)
	b.WriteByte('\'')
}

// Fragment returns the pairs, in their order, as a value for [ParametersVar], items separated by one blank. No pairs
// give the empty string. Later pairs win over earlier ones of the same key where git wants one value.
//
// An item is written in the old form 'key=value', which every git reads, unless the key contains "=": only the newer
// form 'key'='value', read since git 2.31, can express that. A git older than 2.31 would end with an error at the
// newer form, and an image may well hold one.
//
// The operating system limits one environment string (128 KiB with 4 KiB pages on Linux); Fragment does not.
// The error is a *[PairError].
func Fragment(pairs ...Pair) (string, error) {
	var b strings.Builder
	for i, p := range pairs {
		if err := p.check(); err != nil {
			return "", &PairError{Index: i, Err: err}
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		p.write(&b)
	}
	return b.String(), nil
}

// errValueless is the reason for a pair that says two different things.
var errValueless = errors.New("it is marked valueless but has a value; clear one of them")

func (p Pair) check() error {
	if _, err := CanonicalKey(p.Key); err != nil {
		return err
	}
	if i := strings.IndexByte(p.Value, 0); i >= 0 {
		return fmt.Errorf("%w at byte %d of the value", ErrNUL, i)
	}
	if p.Valueless && p.Value != "" {
		return errValueless
	}
	return nil
}

// write appends the item of a pair that check let through.
func (p Pair) write(b *strings.Builder) {
	switch {
	case strings.IndexByte(p.Key, '=') >= 0:
		writeQuoted(b, p.Key)
		b.WriteByte('=')
		if !p.Valueless {
			writeQuoted(b, p.Value)
		}
	case p.Valueless:
		writeQuoted(b, p.Key)
	default:
		writeQuoted(b, p.Key+"="+p.Value)
	}
}
