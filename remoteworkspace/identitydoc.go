package remoteworkspace

import (
	"bytes"
	"slices"
	"strings"
)

// lineKind says what a line of an identity document is.
type lineKind int

const (
	lineText lineKind = iota
	lineField
	lineMore   // the value, or the rest of it, of the field above
	lineHidden // in front matter, fenced code or a comment
)

// identityLine is one line with its line break.
type identityLine struct {
	raw    string
	kind   lineKind
	indent int // columns
	field  fieldLine
}

// fieldLine is a line taken apart: before + value + after is its text.
type fieldLine struct {
	label         string // as known, "" for none
	before, after string
	value         string
}

// identityDoc is a document in lines.
type identityDoc struct {
	bom   string
	lines []identityLine
	// open is the line that opened what is still hidden at the end, -1 for none.
	open int
}

// splitIdentity takes a document apart; bytes puts it together again.
func splitIdentity(doc []byte) *identityDoc {
	d := &identityDoc{open: -1}
	if rest, ok := bytes.CutPrefix(doc, []byte("\xef\xbb\xbf")); ok {
		d.bom, doc = "\xef\xbb\xbf", rest
	}
	for len(doc) > 0 {
		n := bytes.IndexByte(doc, '\n') + 1
		if n == 0 {
			n = len(doc)
		}
		d.lines = append(d.lines, identityLine{raw: string(doc[:n])})
		doc = doc[n:]
	}
	d.classify()
	return d
}

// classify says of each line what it is.
func (d *identityDoc) classify() {
	end := "" // what closes the hidden part we are in
	above := -1
	for i := range d.lines {
		l := &d.lines[i]
		text := strings.TrimSpace(l.raw)
		l.indent = indentOf(l.raw)
		if end != "" {
			l.kind = lineHidden
			if closes(end, text) {
				end, d.open = "", -1
			}
			continue
		}
		if end = opens(text); i == 0 && text == "---" && d.hasFrontMatter() {
			end = "---"
		}
		if end != "" {
			l.kind, above, d.open = lineHidden, -1, i
			if end == "-->" && strings.Contains(text, end) {
				end, d.open = "", -1
			}
			continue
		}
		if f, ok := parseField(l.raw); ok {
			l.kind, l.field, above = lineField, f, i
			continue
		}
		if above >= 0 && text != "" && l.indent > d.lines[above].indent && !isBlock(text) {
			l.kind = lineMore
			continue
		}
		above = -1
	}
}

// hasFrontMatter reports whether the dashes in the first line open front matter: they do
// when something closes it.
func (d *identityDoc) hasFrontMatter() bool {
	return slices.ContainsFunc(d.lines[1:], func(l identityLine) bool { return closes("---", strings.TrimSpace(l.raw)) })
}

// opens tells what closes the hidden part that a line opens, "" for none.
func opens(text string) string {
	switch {
	case strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"):
		mark := text[:1]
		n := len(text) - len(strings.TrimLeft(text, mark))
		if mark == "`" && strings.Contains(text[n:], "`") {
			return "" // inline code
		}
		return text[:n]
	case strings.HasPrefix(text, "<!--"):
		return "-->"
	}
	return ""
}

// closes tells whether a line ends a hidden part.
func closes(end, text string) bool {
	switch end {
	case "-->":
		return strings.Contains(text, end)
	case "---":
		return text == end || text == "..."
	}
	return strings.HasPrefix(text, end) && strings.Trim(text, end[:1]) == ""
}

// isBlock reports a line that begins something of its own rather than going on with
// the value above it.
func isBlock(text string) bool {
	_, _, bullet := cutBullet(text)
	return bullet || strings.HasPrefix(text, "#") || strings.HasPrefix(text, ">") || strings.HasPrefix(text, "|")
}

// indentOf counts the columns before the text; a tab goes to the next multiple of 4.
func indentOf(s string) int {
	n := 0
	for _, c := range []byte(s) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// cutBullet cuts a list marker and the blanks behind it.
func cutBullet(s string) (marker, rest string, ok bool) {
	if len(s) < 2 || !strings.Contains("-*+", s[:1]) || s[1] != ' ' && s[1] != '\t' {
		return "", s, false
	}
	rest = strings.TrimLeft(s[1:], " \t")
	return s[:len(s)-len(rest)], rest, true
}

// parseField takes a line of the form "- **Label:** value" apart.
func parseField(raw string) (fieldLine, bool) {
	text := strings.TrimRight(raw, "\r\n")
	rest := strings.TrimLeft(text, " \t")
	_, rest, _ = cutBullet(rest)
	mark := ""
	for _, m := range []string{"**", "__", "*", "_"} {
		if strings.HasPrefix(rest, m) {
			mark, rest = m, rest[len(m):]
			break
		}
	}
	label, rest, ok := strings.Cut(rest, ":")
	if !ok {
		return fieldLine{}, false
	}
	label = strings.TrimRight(label, " \t")
	closed := mark == ""
	if !closed {
		if cut, ok := strings.CutSuffix(label, mark); ok {
			label, closed = cut, true
		} else if cut, ok := strings.CutPrefix(rest, mark); ok {
			rest, closed = cut, true
		}
	}
	f := fieldLine{label: knownLabel(label)}
	if f.label == "" {
		return fieldLine{}, false
	}
	value := strings.TrimSpace(rest)
	if !closed { // the emphasis goes round the whole line
		cut, ok := strings.CutSuffix(value, mark)
		if !ok {
			return fieldLine{}, false
		}
		value = strings.TrimSpace(cut)
		f.after = mark
	}
	f.value = value
	f.before = text[:len(text)-len(rest)]
	if value != "" {
		start := strings.Index(rest, value)
		f.before += rest[:start]
	}
	return f, true
}

// knownLabel is the spelling of a label we know, in any letter case.
func knownLabel(s string) string {
	for _, f := range identityFields() {
		if strings.EqualFold(f.label, strings.TrimSpace(s)) {
			return f.label
		}
	}
	return ""
}

// find returns the first line of a label, -1 for none.
func (d *identityDoc) find(label string) int {
	return slices.IndexFunc(d.lines, func(l identityLine) bool { return l.kind == lineField && l.field.label == label })
}

// more is the line after the value that begins at line at.
func (d *identityDoc) more(at int) int {
	end := at + 1
	for end < len(d.lines) && d.lines[end].kind == lineMore {
		end++
	}
	return end
}

// value reads the field at line at.
func (d *identityDoc) value(at int) string {
	parts := []string{d.lines[at].field.value}
	for _, l := range d.lines[at+1 : d.more(at)] {
		parts = append(parts, strings.TrimSpace(l.raw))
	}
	return readValue(strings.TrimSpace(strings.Join(parts, " ")))
}

// bytes is the whole document.
func (d *identityDoc) bytes() []byte {
	var b bytes.Buffer
	b.WriteString(d.bom)
	for _, l := range d.lines {
		b.WriteString(l.raw)
	}
	return b.Bytes()
}

// set returns the document with one field set.
func (d *identityDoc) set(label, value string) []byte {
	at := d.find(label)
	switch {
	case at >= 0 && d.value(at) == value:
	case at >= 0:
		end := d.more(at)
		line := identityLine{raw: d.lines[at].field.with(value) + lineBreak(d.lines[end-1].raw)}
		d.lines = slices.Replace(d.lines, at, end, line)
	case value != "":
		d.add(label, value)
	}
	return d.bytes()
}

// with is the text of the line with another value.
func (f fieldLine) with(value string) string {
	if value == "" {
		return strings.TrimRight(f.before, " \t") + f.after
	}
	before := f.before
	if !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\t") {
		before += " "
	}
	return before + value + f.after
}

// lineBreak is how a line ends.
func lineBreak(raw string) string {
	switch {
	case strings.HasSuffix(raw, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(raw, "\n"):
		return "\n"
	}
	return ""
}

// add writes a new field behind the last one, or at the end of the document.
func (d *identityDoc) add(label, value string) {
	br := "\n"
	if len(d.lines) > 0 && lineBreak(d.lines[0].raw) != "" {
		br = lineBreak(d.lines[0].raw)
	}
	last := -1
	for i, l := range d.lines {
		if l.kind == lineField {
			last = i
		}
	}
	if last >= 0 {
		f := d.lines[last].field
		line := fieldLine{before: relabel(f, label), after: f.after}.with(value)
		d.insert(d.below(last), br, line)
		return
	}
	lines := []string{"- **" + label + ":** " + value}
	at := len(d.lines)
	if d.open >= 0 { // something hidden never ends: nothing behind it would be seen
		at = d.open
	}
	switch {
	case at == 0:
		lines = append([]string{"# Identity", ""}, lines...)
	case strings.TrimSpace(d.lines[at-1].raw) != "":
		lines = append([]string{""}, lines...)
	}
	if at < len(d.lines) {
		lines = append(lines, "")
	}
	d.insert(at, br, lines...)
}

// below is the line after everything that belongs to the field at line at.
func (d *identityDoc) below(at int) int {
	end := d.more(at)
	for end < len(d.lines) {
		l := d.lines[end]
		if l.kind == lineField || strings.TrimSpace(l.raw) == "" || l.indent <= d.lines[at].indent {
			break
		}
		for end++; end < len(d.lines) && l.kind == lineHidden && d.lines[end].kind == lineHidden; end++ {
		}
	}
	return end
}

// relabel is the beginning of a field's line for another label.
func relabel(f fieldLine, label string) string {
	lower := strings.ToLower(f.before)
	at := strings.Index(lower, strings.ToLower(f.label))
	return f.before[:at] + label + f.before[at+len(f.label):]
}

// insert puts lines before line at.
func (d *identityDoc) insert(at int, br string, lines ...string) {
	if at > 0 && lineBreak(d.lines[at-1].raw) == "" {
		d.lines[at-1].raw += br
	}
	var list []identityLine
	for _, s := range lines {
		list = append(list, identityLine{raw: s + br})
	}
	d.lines = slices.Insert(d.lines, at, list...)
}
