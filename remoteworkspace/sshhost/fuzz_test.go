package sshhost

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// FuzzAuthorizedKey: a line is refused, or every one of its options is among those that are kept
// or need no keeping. C175
func FuzzAuthorizedKey(f *testing.F) {
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(newKey(f).PublicKey())))
	for _, options := range []string{``, `restrict `, `command="x" `, `from="127.0.0.1",no-pty `, `expiry-time="20300101" `, `a="b c",d `, `from="1", command="x" `} {
		f.Add(options)
	}
	known := []string{
		"from", "expiry-time", "restrict", "pty", "no-pty", "port-forwarding", "no-port-forwarding", "agent-forwarding", "no-agent-forwarding",
		"x11-forwarding", "no-x11-forwarding", "user-rc", "no-user-rc",
	}
	f.Fuzz(func(t *testing.T, options string) {
		line := options + key
		k, err := ParseAuthorizedKey(line)
		if err != nil {
			return
		}
		_, _, found, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found {
			name, _, _ := strings.Cut(strings.ToLower(o), "=")
			if !slices.Contains(known, name) {
				t.Errorf("option %q of %q was ignored", o, line)
			}
		}
		if slices.Contains(found, "restrict") && !slices.Contains(found, "pty") && !k.NoPTY {
			t.Errorf("%q permits a terminal", line)
		}
	})
}

// FuzzPlainWords: what is run without a shell has no character that a shell would read.
func FuzzPlainWords(f *testing.F) {
	for _, c := range []string{"ls -l", "a;b", "a=b c", "x\ny", "$(x)", "é"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, command string) {
		words, ok := plainWords(command)
		if !ok {
			return
		}
		if len(words) == 0 || strings.ContainsAny(command, "\n\t\"'`$\\|&;<>()*?[]{}~#!^") || strings.Join(words, " ") != strings.Join(strings.Fields(command), " ") {
			t.Errorf("%q was taken for plain: %q", command, words)
		}
	})
}
