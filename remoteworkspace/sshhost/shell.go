package sshhost

import (
	"regexp"
	"strings"
)

// loginScript replaces itself by a login shell: $SHELL of the sandbox where that is an
// executable by an absolute path, else bash, else sh. It is constant text.
const loginScript = `s=${SHELL-}
case $s in /*) [ -f "$s" ] && [ -x "$s" ] || s= ;; *) s= ;; esac
[ -n "$s" ] || s=$(command -v bash || command -v sh) || exit 127
SHELL=$s; export SHELL
exec "$s" -l`

// launchers are the programs that can run a script, in the order they are tried.
func launchers() []string { return []string{"/bin/sh", "sh", "bash"} }

// noShell tells the client that the sandbox has nothing to run a script with.
const noShell = "berth: this workspace's sandbox has no shell; only a program with plain words as arguments can be run (exit code 127)\n"

// plainForm are commands that mean the same to every shell: words of these characters.
var plainForm = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./ -]*$`)

// plainWords splits a command that needs no shell.
func plainWords(command string) ([]string, bool) {
	words := strings.Fields(command)
	if !plainForm.MatchString(command) || strings.Contains(words[0], "=") {
		return nil, false
	}
	return words, true
}
