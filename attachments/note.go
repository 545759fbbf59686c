package attachments

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workberth/workberth/fsbridge"
)

// Outcome says what became of a file.
type Outcome string

// The outcomes.
const (
	// Staged: it was transferred by this call.
	Staged Outcome = "staged"
	// Present: it was there already, proved by its hash.
	Present Outcome = "present"
	// Local: it is on the harness's own machine, and readable.
	Local Outcome = "local"
	// NotCovered: there is nothing to prepare it from; Reason tells. It is not in the note.
	NotCovered Outcome = "not-covered"
)

// PreparedFile is the result of one file.
type PreparedFile struct {
	Fact    MediaFact
	Outcome Outcome
	// Path is what the harness can open, absolute where the place tells its root.
	Path string
	// WorkspacePath is Path relative to the workspace, for staged files.
	WorkspacePath string
	// Reason explains NotCovered.
	Reason string
}

// Note tells a harness where the files of its input are. It is for the text that is
// executed now and for nothing that is kept. The zero Note is no note. Keeps ATT-04, ATT-09,
// ATT-17.
type Note struct {
	// Text is the note: one line per file, without a line end after the last.
	Text string
	// Files are the results, one per file asked for, where the provider gives them.
	Files []PreparedFile
}

// Empty reports whether the note tells nothing.
func (n Note) Empty() bool { return strings.TrimSpace(n.Text) == "" }

// Chars is the length of the note in UTF-16 code units, as maxChars counts.
func (n Note) Chars() int { return chars(n.Text) }

// makeNote is the note about files.
func makeNote(files []PreparedFile) Note {
	var lines []string
	for _, f := range files {
		if f.Outcome != NotCovered {
			lines = append(lines, f.line())
		}
	}
	return Note{Text: strings.Join(lines, "\n"), Files: files}
}

// join is one note made of several.
func join(notes []Note) Note {
	var all Note
	var texts []string
	for _, n := range notes {
		if !n.Empty() {
			texts = append(texts, strings.TrimRight(n.Text, "\n"))
		}
		all.Files = append(all.Files, n.Files...)
	}
	all.Text = strings.Join(texts, "\n")
	return all
}

// line is the line about one file:
//
//	Attached file "report.pdf": "/workspace/media/inbound/0123456789abcdef/report.pdf" (application/pdf, 4096 bytes, from "mail")
func (p PreparedFile) line() string {
	s := "Attached file " + quote(shorten(p.Fact.Name)) + ": " + quote(p.Path) + " ("
	if p.Fact.Type != "" {
		s += plainType(p.Fact.Type) + ", "
	}
	s += fmt.Sprintf("%d bytes", p.Fact.Size)
	if p.Fact.Origin != "" {
		s += ", from " + quote(shorten(p.Fact.Origin))
	}
	return s + ")"
}

// plainType is a media type that cannot be anything else.
func plainType(t string) string {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/.+-_;= ", r)
	}
	if strings.ContainsFunc(t, strange) || len(t) > 127 {
		return quote(shorten(t))
	}
	return t
}

// maxShown is how much of a name or origin a note shows, in characters.
const maxShown = 255

// shorten keeps the beginning and the end of a long text: an extension is at the end.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	r := []rune(s)
	return string(r[:maxShown-56]) + "..." + string(r[len(r)-53:])
}

// quote gives a JSON string in which only printing characters stand for themselves: no
// name can end the string or the line, reorder it or hide in it. What is not UTF-8 becomes
// U+FFFD.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quotable reports whether a path survives quote.
func quotable(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsRune(path, utf8.RuneError)
}

// chars counts UTF-16 code units. Keeps ATT-07.
func chars(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// ExecutionInput is the text a harness executes: the input, and below it the note. The
// input itself is not changed; without a note it is the text. Keeps ATT-09, ATT-17.
func ExecutionInput(input string, n Note) string {
	switch {
	case n.Empty():
		return input
	case input == "":
		return n.Text
	}
	return input + "\n\n" + n.Text
}

// workspacePath is an absolute path below the workspace of a bridge, where it tells one that
// can be written down, and rel otherwise.
func workspacePath(b fsbridge.Bridge, rel string) string {
	ws, ok := fsbridge.Mounts(b).Workspace()
	if !ok || !quotable(ws.Path) {
		return rel
	}
	return strings.TrimSuffix(ws.Path, "/") + "/" + rel
}
