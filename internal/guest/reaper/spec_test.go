//go:build linux

package reaper

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Of every name the last value counts, every value is kept byte for byte, and
// marker, tag and TERM are there.
func TestCompleteEnv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"A", "B", "C", "TERM", "PATH", proc.MarkerVar, TagVar})
		value := rapid.StringOfN(rapid.RuneFrom([]rune("a= \n\"'$\\é")), 0, 5, -1)
		env := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return keys.Draw(t, "key") + "=" + value.Draw(t, "value") }), 0, 12).Draw(t, "env")
		spec := proc.Spec{Argv: []string{"x"}, Env: slices.Clone(env)}
		if rapid.Bool().Draw(t, "tty") {
			spec.TTY = &proc.Size{}
		}
		if rapid.Bool().Draw(t, "marked") {
			spec.Marker = strings.Repeat("ab", 16)
		}
		tag := rapid.SampledFrom([]string{"", "tag"}).Draw(t, "tag")

		got, err := complete(spec, tag)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		if spec.TTY != nil {
			want["TERM"] = "xterm-256color"
		}
		for _, v := range env {
			k, v, _ := strings.Cut(v, "=")
			want[k] = v
		}
		if spec.Marker != "" {
			want[proc.MarkerVar] = spec.Marker
		}
		if tag != "" {
			want[TagVar] = tag
		}
		if len(got.Env) != len(want) {
			t.Fatalf("%q has %d variables, want %d", got.Env, len(got.Env), len(want))
		}
		for _, v := range got.Env {
			k, v, _ := strings.Cut(v, "=")
			if w, ok := want[k]; !ok || w != v {
				t.Errorf("%s is %q, want %q", k, v, w)
			}
		}
		if !slices.Equal(spec.Env, env) {
			t.Error("the caller's environment was changed")
		}
	})
}

func TestCompleteGrace(t *testing.T) {
	for _, tc := range []struct{ grace, want time.Duration }{{0, proc.DefaultGrace}, {time.Second, time.Second}, {-1, -1}} {
		got, err := complete(proc.Spec{Argv: []string{"x"}, Grace: tc.grace}, "")
		if err != nil || got.Grace != tc.want {
			t.Errorf("grace %v becomes %v, %v; want %v", tc.grace, got.Grace, err, tc.want)
		}
	}
}

func TestValidMarker(t *testing.T) {
	for marker, want := range map[string]bool{
		strings.Repeat("0", 32): true, "0123456789abcdefABCDEF0123456789": true,
		"": false, strings.Repeat("0", 31): false, strings.Repeat("0", 33): false,
		strings.Repeat("0", 31) + "g": false, strings.Repeat("0", 31) + "\n": false, strings.Repeat("0", 31) + "=": false,
	} {
		if got := validMarker(marker); got != want {
			t.Errorf("validMarker(%q) = %t", marker, got)
		}
	}
}
