package mediastore

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxName is the longest name CleanName gives, in bytes.
	MaxName = 128
	// maxExtension is the longest suffix that is kept as an extension, in bytes.
	maxExtension = 32
	// unnamed is the name of what has none.
	unnamed = "file"
)

// CleanName makes one safe, flat file name of what a sender called a file: the part
// behind the last separator of either kind, of letters, marks, digits, single spaces and
// "._()-+,=@" only; other printing characters become "_", what does not print is left
// out. It begins with neither dot, dash nor space, ends with neither dot nor space, is no
// device name of any system, has at most MaxName bytes with its extension kept, and is
// never empty. Cleaning a clean name changes nothing. C125 C127.
func CleanName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == utf8.RuneError:
			b.WriteByte('_')
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
		case kept(r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return shape(strings.Join(strings.Fields(b.String()), " "))
}

// kept reports whether a printing character stays as it is.
func kept(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || unicode.IsNumber(r) || strings.ContainsRune("._()-+,=@", r)
}

// shape gives a name of kept characters its ends and its length.
func shape(name string) string {
	name = strings.TrimLeft(name, ".- ")
	name = strings.TrimRight(name, ". ")
	if name == "" {
		return unnamed
	}
	if reserved(name) {
		name = unnamed + "-" + name
	}
	if len(name) <= MaxName {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > maxExtension {
		ext = ""
	}
	return cut(strings.TrimSuffix(name, ext), MaxName-len(ext)) + ext
}

// cut takes at most n bytes of s, ending at a character and without dots and spaces there.
func cut(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.TrimRight(s, ". ")
}

// reserved reports whether some system takes the name for a device, with any extension.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN", "CONOUT":
		return true
	}
	if rest, ok := strings.CutPrefix(stem, "COM"); ok || strings.HasPrefix(stem, "LPT") {
		if !ok {
			rest = stem[3:]
		}
		return utf8.RuneCountInString(rest) == 1 && strings.ContainsAny(rest, "0123456789¹²³")
	}
	return false
}
