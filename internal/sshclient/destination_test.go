package sshclient

import (
	"errors"
	"strings"
	"testing"
)

func TestParseDestination(t *testing.T) {
	for text, want := range map[string]Destination{
		"host":                      {"", "host", 0},
		"user@host":                 {"user", "host", 0},
		"user@host:2222":            {"user", "host", 2222},
		"host:22":                   {"", "host", 22},
		"a@b@host":                  {"a@b", "host", 0},
		"ssh://user@host:22/":       {"user", "host", 22},
		"ssh://host":                {"", "host", 0},
		"::1":                       {"", "::1", 0},
		"user@::1":                  {"user", "::1", 0},
		"[::1]":                     {"", "::1", 0},
		"[::1]:42222":               {"", "::1", 42222},
		"user@[fe80::1%eth0]:22":    {"user", "fe80::1%eth0", 22},
		"fe80::1%eth0":              {"", "fe80::1%eth0", 0},
		"10.0.0.1:65535":            {"", "10.0.0.1", 65535},
		"my-host_1.example.":        {"", "my-host_1.example.", 0},
		"DOMAIN\\user@host":         {"DOMAIN\\user", "host", 0},
		strings.Repeat("h", 512):    {"", strings.Repeat("h", 512), 0},
		"ssh://user@[2001:db8::1]/": {"user", "2001:db8::1", 0},
	} {
		got, err := ParseDestination(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
			continue
		}
		if again, err := ParseDestination(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q, which reads %+v, %v", text, got, again, err)
		}
	}
}

// What could be an option of a program, or is anything but a destination, is refused. C103
func TestNoDestination(t *testing.T) {
	for _, text := range []string{
		"", "@host", "user@", "host:", "host:0", "host:65536", "host:-1", "host:+22", "host:22x", ":22", "user:secret@host",
		"-oProxyCommand=id", "-l@host", "user@-host", "[::1", "[]", "[host]:22", "[::1]22", "[::1]:", "a:b:c", "host/path",
		"ssh://host/path", "ho st", "host\n", "host\x00", "host\u00a0x", "[::1]:0", strings.Repeat("h", 513),
	} {
		d, err := ParseDestination(text)
		var bad *DestinationError
		if !errors.As(err, &bad) || d != (Destination{}) || bad.Rule == "" {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
}
