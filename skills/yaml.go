package skills

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of a frontmatter's content. The parser's time and memory grow with the square of the
// characters that have a meaning, and with every bracket that is open, so these are counted before it
// is asked.
const (
	maxNesting    = 20
	maxValues     = 2_000
	maxIndicators = 4_000
	maxOpen       = 64
)

// indicators are the characters that mean something to YAML.
const indicators = "[]{},:\"'&*!-?|>#%@`"

// tooComplex refuses a text that would keep the parser busy. Quotes do not protect a character here:
// what is quoted is told by the parser alone.
func tooComplex(text string) error {
	count, open, line := 0, 0, 1
	for i := range len(text) {
		c := text[i]
		switch c {
		case '\n':
			line++
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if strings.IndexByte(indicators, c) >= 0 {
			count++
		}
		if count > maxIndicators || open > maxOpen {
			return &yamlError{
				line: line, rule: RuleSize, text: fmt.Sprintf("the frontmatter has more than %d brackets, quotes and punctuation marks, or %d brackets that are open at a time", maxIndicators, maxOpen),
				fix: "move text below the frontmatter",
			}
		}
	}
	return nil
}

// yamlError is why a text cannot be taken as YAML, with its line in that text, from 1.
type yamlError struct {
	line int
	rule Rule
	text string
	fix  string
}

// Error gives the reason.
func (p *yamlError) Error() string { return p.text }

// field is one top-level entry of a mapping.
type field struct {
	key   string
	value any
	// line is the one of the key, from 1.
	line int
}

// parseMapping parses a YAML mapping into its fields, in order.
func parseMapping(text string) (fields []field, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser's own fault must not end the search
			fields, err = nil, &yamlError{line: 1, rule: RuleYAML, text: fmt.Sprintf("the YAML parser failed: %v", r)}
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, problemOf(err)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, nil
	}
	if len(file.Docs) > 1 {
		return nil, &yamlError{line: 1, rule: RuleYAML, text: "more than one YAML document", fix: "keep one"}
	}
	c := converter{left: maxValues}
	root := file.Docs[0].Body
	if _, comment := root.(*ast.CommentGroupNode); comment {
		return nil, nil
	}
	m, ok := root.(ast.MapNode)
	if !ok {
		return nil, &yamlError{line: lineOfNode(root), rule: RuleYAML, text: "the frontmatter is no mapping", fix: "write fields as key: value, one a line"}
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		if s, isString := it.Key().(*ast.StringNode); isString {
			key = s.Value
		}
		f := field{key: key, line: lineOfNode(it.Key())}
		if seen[key] {
			return nil, &yamlError{line: f.line, rule: RuleDuplicate, text: fmt.Sprintf("%s is given twice", key), fix: "keep one of the two"}
		}
		seen[key] = true
		if f.value, err = c.convert(it.Value(), 1); err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// converter turns nodes into plain values.
type converter struct{ left int }

func (c *converter) convert(n ast.Node, depth int) (any, error) {
	if c.left--; c.left < 0 || depth > maxNesting {
		return nil, &yamlError{line: lineOfNode(n), rule: RuleSize, text: fmt.Sprintf("the frontmatter has more than %d values or is nested deeper than %d", maxValues, maxNesting)}
	}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return nil, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.IntegerNode:
		return n.Value, nil
	case *ast.FloatNode:
		return n.Value, nil
	case *ast.InfinityNode, *ast.NanNode:
		return n.String(), nil
	case *ast.SequenceNode:
		list := make([]any, 0, len(n.Values))
		for _, v := range n.Values {
			x, err := c.convert(v, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	case ast.MapNode:
		return c.mapping(n, depth)
	}
	return nil, &yamlError{
		line: lineOfNode(n), rule: RuleYAML, text: fmt.Sprintf("%s is not part of the format", nodeName(n)),
		fix: "write the value out, in quotes if it is text",
	}
}

func (c *converter) mapping(n ast.MapNode, depth int) (any, error) {
	out := map[string]any{}
	for it := n.MapRange(); it.Next(); {
		key := it.Key().String()
		if s, ok := it.Key().(*ast.StringNode); ok {
			key = s.Value
		}
		if _, twice := out[key]; twice {
			return nil, &yamlError{line: lineOfNode(it.Key()), rule: RuleDuplicate, text: fmt.Sprintf("%s is given twice", key), fix: "keep one of the two"}
		}
		v, err := c.convert(it.Value(), depth+1)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

// nodeName says what a node is that has no place in a frontmatter.
func nodeName(n ast.Node) string {
	switch n.(type) {
	case *ast.AliasNode:
		return "an alias (*name)"
	case *ast.AnchorNode:
		return "an anchor (&name)"
	case *ast.TagNode:
		return "a tag (!name)"
	case *ast.MergeKeyNode:
		return "a merge key (<<)"
	}
	return "this kind of value"
}

func lineOfNode(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// problemOf takes line and message from an error of the YAML library.
func problemOf(err error) *yamlError {
	p := &yamlError{line: 1, rule: RuleYAML, text: err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		p.text = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			p.line = t.Position.Line
		}
	}
	return p
}
