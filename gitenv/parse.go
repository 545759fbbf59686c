package gitenv

import "strings"

// Parse reads a value of [ParametersVar] exactly as git 2.39 does and returns the settings in their order, keys in
// canonical form. The empty value has none.
//
// An item is 'key=value' or 'key' (the old form, in which white space around the key is dropped), or 'key'='value' or
// 'key'= (the form git writes since 2.31). Both may be mixed. A key that stands alone has no value, which git reads as
// true. Items are separated, and may be followed, by blanks, tabs, line feeds and carriage returns; the value must not
// begin with one. Outside the quotes only \' and \! may stand, and only where the quotes go on right behind.
//
// The error is a *[SyntaxError]. Git refuses the value in exactly these cases, whatever command is run, so a parent
// that passes it on breaks every git below it. What a setting means is not looked at: git still refuses, for
// example, an include.path that is relative.
func Parse(value string) ([]Pair, error) {
	p := parser{text: value}
	if i := strings.IndexByte(value, 0); i >= 0 {
		return nil, p.fail(i, ErrNUL.Error(), ErrNUL)
	}
	var pairs []Pair
	for p.pos < len(value) {
		pair, err := p.item()
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
		for p.pos < len(value) && isSpace(value[p.pos]) {
			p.pos++
		}
	}
	return pairs, nil
}

// parser walks over a value of ParametersVar; pos is the next byte to read.
type parser struct {
	text string
	pos  int
}

func (p *parser) fail(offset int, reason string, kind error) error {
	return &SyntaxError{Var: ParametersVar, Offset: offset, Reason: reason, Kind: kind}
}

// atEnd reports whether an item may end here.
func (p *parser) atEnd() bool { return p.pos == len(p.text) || isSpace(p.text[p.pos]) }

// item reads one item and stops behind it.
func (p *parser) item() (Pair, error) {
	start := p.pos
	first, err := p.quoted()
	if err != nil {
		return Pair{}, err
	}
	pair := Pair{Key: first}
	switch {
	case p.atEnd():
		var found bool
		pair.Key, pair.Value, found = strings.Cut(first, "=")
		pair.Valueless = !found
		pair.Key = strings.Trim(pair.Key, spaces)
	case p.text[p.pos] == '=':
		p.pos++
		switch {
		case p.atEnd():
			pair.Valueless = true
		case p.text[p.pos] != '\'':
			return Pair{}, p.fail(p.pos, `the value behind "=" is not quoted`, nil)
		default:
			if pair.Value, err = p.quoted(); err != nil {
				return Pair{}, err
			}
			if !p.atEnd() {
				return Pair{}, p.fail(p.pos, "no white space behind the quoted value", nil)
			}
		}
	default:
		return Pair{}, p.fail(p.pos, `neither white space nor "=" behind the quoted key`, nil)
	}
	if pair.Key, err = CanonicalKey(pair.Key); err != nil {
		return Pair{}, p.fail(start, err.Error(), ErrKey)
	}
	return pair, nil
}

// quoted reads a single-quoted word, stops behind it and returns what it stands for.
func (p *parser) quoted() (string, error) {
	start := p.pos
	if p.text[start] != '\'' {
		return "", p.fail(start, "an item must start with a single quote", nil)
	}
	var b strings.Builder
	p.pos++
	for {
		n := strings.IndexByte(p.text[p.pos:], '\'')
		if n < 0 {
			return "", p.fail(start, "the single quote is not closed", ErrUnbalanced)
		}
		b.WriteString(p.text[p.pos : p.pos+n])
		p.pos += n + 1
		rest := p.text[p.pos:]
		if len(rest) < 3 || rest[0] != '\\' || (rest[1] != '\'' && rest[1] != '!') || rest[2] != '\'' {
			return b.String(), nil
		}
		b.WriteByte(rest[1])
		p.pos += 3
	}
}
