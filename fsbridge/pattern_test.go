package fsbridge

import (
	"errors"
	"path"
	"reflect"
	"strings"
	"testing"
)

func TestParsePattern(t *testing.T) {
	for _, bad := range []string{"[", "a/[b", "{", "{a", "a{b,c", "\\", "a\\", "[]", "[a-]", "x/{a,{b}", "*/../x", "**/..", "{a,[}"} {
		if list, err := ParsePattern(bad); !errors.Is(err, path.ErrBadPattern) {
			t.Errorf("%q: %v, %v", bad, list, err)
		}
	}
	for s, want := range map[string][]string{
		"a":            {"a"},
		"{a,b}":        {"a", "b"},
		"x{a,b}y":      {"xay", "xby"},
		"{a,b}{c,d}":   {"ac", "ad", "bc", "bd"},
		"{a,{b,c}d}":   {"a", "bd", "cd"},
		"{a}":          {"a"},
		"{}x":          {"x"},
		"{,a}x":        {"x", "ax"},
		"a}b":          {"a}b"},
		`\{a,b\}`:      {`\{a,b\}`},
		"[{]a":         {"[{]a"},
		"[]{]{a,b}":    {"[]{]a", "[]{]b"},
		"{a/b,c}/*":    {"a/b/*", "c/*"},
		"{[,],x}":      {"[,]", "x"},
		`{a\,b,c}`:     {`a\,b`, "c"},
		"**/{*.go,mod": nil,
	} {
		got, err := expandBraces(s, nil)
		if want == nil {
			if err == nil {
				t.Errorf("%q expands to %q", s, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q expands to %q, %v, want %q", s, got, err, want)
		}
	}
	many := strings.Repeat("{a,b}", 13)
	if _, err := ParsePattern(many); !errors.Is(err, ErrTooLarge) {
		t.Errorf("8192 alternatives: %v", err)
	}
}

func TestPatternElements(t *testing.T) {
	list, err := ParsePattern("a/./b/**/**/x*/")
	if err != nil || len(list) != 1 || !list[0].DirOnly || list[0].Absolute {
		t.Fatalf("%+v, %v", list, err)
	}
	literals, rest := list[0].Prefix()
	if !reflect.DeepEqual(literals, []string{"a", ".", "b"}) || !reflect.DeepEqual(rest, []PatternElement{{Any: true}, {Match: "x*"}}) {
		t.Errorf("prefix %q, rest %+v", literals, rest)
	}
	if !rest[1].Matches("xy") || rest[1].Matches("yx") {
		t.Error("x* does not match as it should")
	}
	for _, bad := range []string{"", "a\x00", strings.Repeat("a/", MaxPath)} {
		if err := ValidPattern(bad); !errors.Is(err, ErrInvalidPath) {
			t.Errorf("%.10q is a valid pattern: %v", bad, err)
		}
	}
	if err := ValidPattern("{" + strings.Repeat("x,", 200) + "}"); err != nil {
		t.Errorf("an element that braces lengthen: %v", err)
	}
}
