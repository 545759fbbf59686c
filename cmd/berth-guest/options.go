//go:build linux

package main

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/workberth/workberth/fsbridge"
)

// flagError is a command line that no caller of ours writes.
type flagError struct{ text string }

// Error gives the reason.
func (e *flagError) Error() string { return e.text }

// options say what to serve.
type options struct {
	mounts    fsbridge.MountTable
	tag       string
	readLimit int64
	// home is made when it is missing; empty means none.
	home string
}

// parseOptions reads the flags. Each is one word, so that no shell on the way has
// anything to interpret.
func parseOptions(args []string) (options, error) {
	var o options
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok {
			return o, &flagError{fmt.Sprintf("%q has no value", a)}
		}
		switch name {
		case "--mount":
			m, err := parseMount(value)
			if err != nil {
				return o, err
			}
			o.mounts = append(o.mounts, m)
		case "--tag":
			if !isTag(value) {
				return o, &flagError{fmt.Sprintf("--tag %q is not 16 hexadecimal digits", value)}
			}
			o.tag = value
		case "--home":
			if !path.IsAbs(value) || path.Clean(value) != value {
				return o, &flagError{fmt.Sprintf("--home %q: not an absolute clean path", value)}
			}
			o.home = value
		case "--read-limit":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n <= 0 {
				return o, &flagError{fmt.Sprintf("--read-limit %q is no number of bytes", value)}
			}
			o.readLimit = n
		default:
			return o, &flagError{fmt.Sprintf("unknown flag %q", name)}
		}
	}
	if len(o.mounts) == 0 {
		return o, &flagError{"no --mount: there is nothing to serve"}
	}
	return o, nil
}

// isTag reports whether s can name a session.
func isTag(s string) bool { return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == "" }

// parseMount reads KIND:ro|rw:PATH.
func parseMount(s string) (fsbridge.Mount, error) {
	kind, rest, _ := strings.Cut(s, ":")
	mode, p, _ := strings.Cut(rest, ":")
	m := fsbridge.Mount{Kind: fsbridge.MountKind(kind), Path: p, ReadOnly: mode == "ro"}
	switch m.Kind {
	case fsbridge.MountWorkspace, fsbridge.MountBind, fsbridge.MountTmpfs, fsbridge.MountSystem:
	default:
		return m, &flagError{fmt.Sprintf("--mount %q: unknown kind", s)}
	}
	if mode != "ro" && mode != "rw" {
		return m, &flagError{fmt.Sprintf("--mount %q: neither ro nor rw", s)}
	}
	if !path.IsAbs(p) || path.Clean(p) != p {
		return m, &flagError{fmt.Sprintf("--mount %q: not an absolute clean path", s)}
	}
	return m, nil
}
