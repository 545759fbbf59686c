package gitenv

import (
	"fmt"
	"strings"
)

// CanonicalKey checks a key as git does and returns the form in which git compares and prints it: section and name in
// lower case, the subsection as it is.
//
// The section consists of ASCII letters, digits and "-"; so does the name, which starts with a letter. A subsection,
// between the first and the last dot, may hold any byte but a line feed and NUL. Like git it allows an empty section
// before a subsection (".sub.name"). The error matches [ErrKey], or [ErrNUL] too, and does not repeat the key.
func CanonicalKey(key string) (string, error) {
	if key == "" {
		return "", fmt.Errorf("%w: it is empty", ErrKey)
	}
	if strings.IndexByte(key, 0) >= 0 {
		return "", fmt.Errorf("%w: %w", ErrKey, ErrNUL)
	}
	last := strings.LastIndexByte(key, '.')
	if last <= 0 {
		return "", fmt.Errorf("%w: it has no section", ErrKey)
	}
	name := key[last+1:]
	if name == "" {
		return "", fmt.Errorf("%w: it has no name after the last dot", ErrKey)
	}
	section, subsection := key[:last], ""
	if first := strings.IndexByte(key, '.'); first < last {
		section, subsection = key[:first], key[first:last]
	}
	if i := badKeyByte(section); i >= 0 {
		return "", fmt.Errorf("%w: byte %d of its section is not a letter, a digit or a dash", ErrKey, i)
	}
	if strings.IndexByte(subsection, '\n') >= 0 {
		return "", fmt.Errorf("%w: its subsection holds a line feed", ErrKey)
	}
	if i := badKeyByte(name); i >= 0 {
		return "", fmt.Errorf("%w: byte %d of its name is not a letter, a digit or a dash", ErrKey, i)
	}
	if !isLetter(name[0]) {
		return "", fmt.Errorf("%w: its name does not start with a letter", ErrKey)
	}
	return strings.ToLower(section) + subsection + "." + strings.ToLower(name), nil
}

// splitKey takes a canonical key apart. The subsection has no dots around it; named tells an empty one, which git
// takes for a name like any other, from none.
func splitKey(key string) (section, subsection, name string, named bool) {
	last := strings.LastIndexByte(key, '.')
	section, name = key[:last], key[last+1:]
	section, subsection, named = strings.Cut(section, ".")
	return section, subsection, name, named
}

// badKeyByte returns the position of the first byte that may be in neither a section nor a name, or -1.
func badKeyByte(s string) int {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (c < '0' || c > '9') && c != '-' {
			return i
		}
	}
	return -1
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// spaces is git's own idea of white space, which includes neither vertical tab nor form feed.
const spaces = " \t\n\r"

func isSpace(c byte) bool { return strings.IndexByte(spaces, c) >= 0 }
