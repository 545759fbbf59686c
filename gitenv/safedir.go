package gitenv

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// SafeDirectories returns a fragment that makes git accept repositories in exactly these directories although someone
// else owns them (safe.directory), instead of failing with "detected dubious ownership". It replaces the usual "*" and
// any edit of a person's ~/.gitconfig.
//
// Each path is the absolute POSIX path of a work tree, or of a bare repository, as the child sees it. Git compares it
// with the real path, so links must be resolved first. A linked work tree is named by its own path; its git directory
// may be named beside it, for a git that checks it separately. Trailing and doubled slashes are dropped, because git
// would not match them, and so are repetitions. No paths give the empty fragment.
//
// Refused with an error that matches [ErrPath]: an empty path (it would clear the list), a relative one, "*" included,
// one with a ".." element, one that ends in "/*" (newer versions of git take that as everything below), and a NUL byte.
//
// Git before 2.38 takes safe.directory only from configuration files; to it the fragment is harmless and without effect.
func SafeDirectories(paths ...string) (string, error) {
	pairs := make([]Pair, 0, len(paths))
	for i, p := range paths {
		reason := ""
		switch {
		case p == "":
			reason = "it is empty, which would clear the list"
		case p[0] != '/':
			reason = "it is not absolute"
		case strings.IndexByte(p, 0) >= 0:
			reason = "it holds a NUL byte"
		case slices.Contains(strings.Split(p, "/"), ".."):
			reason = `it has a ".." element; resolve it first`
		case strings.HasSuffix(path.Clean(p), "/*"):
			reason = `it ends in "/*", which would stand for everything below`
		}
		if reason != "" {
			return "", fmt.Errorf("gitenv: path %d (%q): %w: %s; give the exact directory", i, p, ErrPath, reason)
		}
		pair := Pair{Key: "safe.directory", Value: path.Clean(p)}
		if !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	return Fragment(pairs...)
}
