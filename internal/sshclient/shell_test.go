package sshclient

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
)

// commands are texts that a shell would run something for.
func commands(mark string) []string {
	return []string{
		"x$(touch${IFS}" + mark + ")", "x`touch${IFS}" + mark + "`", "x;touch${IFS}" + mark, "x|touch${IFS}" + mark,
		"x&touch${IFS}" + mark, "x>" + mark, "x<" + mark, "x'", `x"`, "{x,y}", `x\`,
	}
}

// Neither host nor user bring a command into a ProxyCommand, as OpenSSH's client has it. C103
func TestNamesAreNoCommands(t *testing.T) {
	t.Parallel()
	for _, text := range commands("ran") {
		for _, destination := range []string{text, text + ":22", "user@" + text, "[::1%" + text + "]:22", "::1%" + text, text + "@host"} {
			p := newPlace(t, "Host *\n ProxyCommand cd ~ && : %h %n %r %p; exit 1")
			p.env.Getenv = func(string) string { return "" }
			err := p.connect(destination, Options{})
			var bad *DestinationError
			if !errors.As(err, &bad) {
				t.Errorf("%q: %v", destination, err)
			}
			if _, err := os.Stat("ran"); err == nil {
				_ = os.Remove("ran")
				t.Errorf("%q runs a command", destination)
			}
		}
	}
	for _, destination := range []string{`DOMAIN\user@host`, "machine$@host", "a.b_c-d~1@h*st"} {
		if _, err := ParseDestination(destination); err != nil {
			t.Error(err)
		}
	}
}

// What a server says stays one line, without what a terminal obeys or shows in another order. C105
func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a\x1b[2Jb", "a\u009b2Jb", "a\u0090x\u009cb", "a\u202eb", "a\u2066b", "a\u2028b", "a\u2029b", "a\ufeffb", "a\xc2b", "a\xff\r\n\tb", "a\x00\x7fb",
		strings.Repeat("\u00e4", 1000), strings.Repeat("\u20ac", 1000), "x" + strings.Repeat("\U0001f600", 1000),
	} {
		got := OneLine(text)
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }); i >= 0 {
			t.Errorf("%.20q has %q", text, got[i:min(i+8, len(got))])
		}
		if len(got) > 310 || len(got) < 2 {
			t.Errorf("%.20q: %d bytes are left", text, len(got))
		}
	}
	if got := OneLine("  Willkommen, J\u00fcrgen  "); got != "Willkommen, J\u00fcrgen" {
		t.Error(got)
	}
}

// A line of known hosts that cannot be read ends the attempt, and is named: it could be one
// that revokes a key.
func TestOddKnownHosts(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"@revoked", "@odd * ssh-ed25519 AAAA", "host ssh-ed25519 !!!", "host", "host ssh-ed25519 AAAA", strings.Repeat("x", 1<<20)} {
		p := newPlace(t, "Host box\n HostName 127.0.0.1\n Port 1\n UserKnownHostsFile ~/known\n GlobalKnownHostsFile none")
		path := p.file("known", "# comment\n\n\r\n"+odd+"\n")
		err := p.connect("box", Options{})
		var conf *ConfigError
		if !errors.As(err, &conf) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%.30q: %v", odd, err)
		}
		if len(fmt.Sprint(err)) > 1000 {
			t.Errorf("%.30q: an error of %d bytes", odd, len(fmt.Sprint(err)))
		}
	}
}
