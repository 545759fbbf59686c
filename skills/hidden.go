package skills

import (
	"strconv"
	"strings"
	"unicode"
)

// hidden reports a character that is not seen, or changes how others are seen: a text with one says
// something else to a model than to the person who reviews it. Line feeds and tabs are none, nor are the
// joiners that some scripts cannot do without.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	}
	// Selectors that no font has a variant for, and letters that are blank.
	return r >= 0xE0100 && r <= 0xE01EF || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0'
}

// shown is a text without its hidden characters, and whether it had some.
func shown(text string) (string, bool) {
	if !strings.ContainsFunc(text, hidden) {
		return text, false
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, text), true
}

// oneLine is a message in which nothing of a file ends the line, hides in it or goes on for ever.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range clip(text, 600) {
		if strconv.IsPrint(r) && !hidden(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
