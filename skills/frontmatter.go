package skills

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxFrontmatter bounds the block, in bytes.
	maxFrontmatter = 16 << 10
	// maxHead bounds where it may end: so much of a file is split into lines.
	maxHead = 128 << 10
)

// block is the frontmatter of a file, with line feeds only.
type block struct {
	text string
	// line is the line of the file that text begins on, body the one after the closing line.
	line, body int
}

// frontmatter finds the block in the content of a SKILL.md. What the meaning is plain of is
// accepted: a byte-order mark, any line ends, blank lines and HTML comments before the block, white
// space around "---", and "..." as its end.
func frontmatter(data []byte) (block, *Fault) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if f := notText(data); f != nil {
		return block{}, f
	}
	lines := strings.Split(lineFeeds(string(data[:min(len(data), maxHead)])), "\n")
	first, ok := blockStart(lines)
	if !ok {
		return block{}, &Fault{
			Line: min(first+1, len(lines)), Rule: RuleFrontmatter, Text: fmt.Sprintf("no frontmatter: the first line of content is %s, not \"---\"", quoteLine(lines, first)),
			Fix: "begin the file with a line ---, then name: and description:, then a line ---",
		}
	}
	size := 0
	for i := first + 1; i < len(lines); i++ {
		if t := strings.TrimRight(lines[i], " \t"); t == "---" || t == "..." {
			return block{text: strings.Join(lines[first+1:i], "\n"), line: first + 2, body: i + 2}, nil
		}
		if size += len(lines[i]) + 1; size > maxFrontmatter {
			return block{}, &Fault{
				Line: first + 1, Rule: RuleSize, Text: fmt.Sprintf("the frontmatter is larger than %d bytes", maxFrontmatter),
				Fix: "end it with a line ---, and move text below it",
			}
		}
	}
	return block{}, &Fault{
		Line: first + 1, Rule: RuleFrontmatter, Text: "the frontmatter that begins here has no end",
		Fix: "add a line --- after its last field",
	}
}

// lineFeeds turns CR LF and CR into LF.
func lineFeeds(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}

// blockStart is the line of the opening "---", or, without one, the first line of content.
func blockStart(lines []string) (at int, ok bool) {
	comment := false
	for i, l := range lines {
		t := strings.TrimSpace(l)
		if !comment && strings.HasPrefix(t, "<!--") {
			comment = true
			t = t[len("<!--"):]
		}
		if comment {
			_, rest, ends := strings.Cut(t, "-->")
			if !ends {
				continue
			}
			comment = false
			t = strings.TrimSpace(rest)
		}
		switch t {
		case "":
		case "---":
			return i, true
		default:
			return i, false
		}
	}
	return 0, false
}

// quoteLine shows the beginning of a line.
func quoteLine(lines []string, at int) string {
	const most = 40
	l := []rune(strings.TrimSpace(lines[at]))
	if len(l) > most {
		return fmt.Sprintf("%q...", string(l[:most]))
	}
	return fmt.Sprintf("%q", string(l))
}

// notText finds what cannot be UTF-8 text.
func notText(data []byte) *Fault {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &Fault{Line: 1, Rule: RuleEncoding, Text: "the file is UTF-16", Fix: "save it as UTF-8"}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return &Fault{Line: lineOf(data, i), Rule: RuleEncoding, Text: "the file has a NUL byte", Fix: "save it as UTF-8 text"}
	}
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return &Fault{Line: lineOf(data, at), Rule: RuleEncoding, Text: "the file is not UTF-8", Fix: "save it as UTF-8"}
	}
	return nil
}

func lineOf(data []byte, at int) int {
	return 1 + strings.Count(lineFeeds(string(data[:at])), "\n")
}
