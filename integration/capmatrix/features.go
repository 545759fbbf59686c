package main

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/workberth/workberth/sandbox"
)

// feature is a line of the table of backends.
type feature struct {
	name  string
	value func(report) string
}

// features lists the fields of sandbox.Features, in their order: a new one shows up by itself.
func features() []feature {
	var out []feature
	for field := range reflect.TypeFor[sandbox.Features]().Fields() {
		out = append(out, feature{name: words(field.Name), value: func(r report) string {
			return show(reflect.ValueOf(*r.Features).FieldByIndex(field.Index))
		}})
	}
	return out
}

// show writes a value for a person.
func show(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return "yes"
		}
		return "–"
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, v.Index(i).String())
		}
		return list(parts)
	}
	return v.String()
}

// words splits a Go name: "ReadOnlyRoot" becomes "read only root", "TTY" stays as it is.
func words(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		begins := unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	split := strings.Fields(b.String())
	for i, w := range split {
		if w != strings.ToUpper(w) || len(w) == 1 {
			split[i] = strings.ToLower(w)
		}
	}
	return strings.Join(split, " ")
}
