package sshclient

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// configFiles are the parsed files, the more important first.
type configFiles []*ssh_config.Config

// openConfig reads the files. ignored tells why the system's does not count.
func openConfig(destination string, env Environment) (files configFiles, ignored string, err error) {
	if strings.EqualFold(env.ConfigFile, "none") {
		return nil, "", nil
	}
	own, system := env.ConfigFile, ""
	if own == "" {
		own, system = filepath.Join(env.Home, ".ssh", "config"), env.SystemConfig
	}
	parsed, err := parseConfig(own)
	switch {
	case err == nil:
		files = append(files, parsed)
	case env.ConfigFile == "" && errors.Is(err, fs.ErrNotExist):
	default:
		return nil, "", &ConfigError{Host: destination, Err: err}
	}
	if system == "" {
		return files, "", nil
	}
	parsed, err = parseConfig(system)
	switch {
	case err == nil:
		files = append(files, parsed)
	case !errors.Is(err, fs.ErrNotExist):
		// The user did not write it and may be unable to change it.
		ignored = err.Error()
	}
	return files, ignored, nil
}

func parseConfig(path string) (*ssh_config.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := ssh_config.DecodeBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return parsed, nil
}

// lookup reads keywords about one host. The first failure is kept.
type lookup struct {
	alias  string
	files  configFiles
	expand expander
	err    error
}

func (l *lookup) fail(setting string, err error) {
	if l.err == nil {
		l.err = &ConfigError{Host: l.alias, Setting: setting, Err: err}
	}
}

// text returns a keyword's first value.
func (l *lookup) text(key, otherwise string) string {
	if value := l.raw(key); value != "" {
		return unquote(value)
	}
	return otherwise
}

// raw returns a keyword's first value as it is written.
func (l *lookup) raw(key string) string {
	for _, f := range l.files {
		value, err := f.Get(l.alias, key)
		if err != nil {
			l.fail(key, err)
		}
		if value != "" {
			return value
		}
	}
	return ""
}

// every returns all values of a keyword that may be repeated, as paths. named reports
// whether it has any, be it "none".
func (l *lookup) every(key string) (all []string, named bool) {
	for _, f := range l.files {
		values, err := f.GetAll(l.alias, key)
		if err != nil {
			l.fail(key, err)
		}
		for _, v := range values {
			named = true
			if v = unquote(v); !strings.EqualFold(v, "none") {
				all = append(all, l.expand.path(v))
			}
		}
	}
	return all, named
}

// paths returns a keyword's list of files.
func (l *lookup) paths(key string, otherwise ...string) []string {
	value := l.raw(key)
	switch {
	case value == "":
		return otherwise
	case strings.EqualFold(value, "none"):
		return nil
	}
	var all []string
	quoted := false
	for _, p := range strings.FieldsFunc(value, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t')
	}) {
		all = append(all, l.expand.path(unquote(p)))
	}
	return all
}

func (l *lookup) yes(key string) bool { return strings.EqualFold(l.text(key, "no"), "yes") }

func (l *lookup) number(key string, otherwise, limit int) int {
	value := l.text(key, "")
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > limit {
		l.fail(key, fmt.Errorf("%q is no number from 1 to %d", value, limit))
		return otherwise
	}
	return n
}

// seconds reads a time as sshd_config(5) writes it; a bare number means seconds.
func (l *lookup) seconds(key string, otherwise time.Duration) time.Duration {
	value := l.text(key, "")
	if value == "" || strings.EqualFold(value, "none") {
		return otherwise
	}
	var sum time.Duration
	for rest := value; rest != ""; {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseUint(rest[:digits], 10, 24)
		unit := time.Second
		if rest = rest[digits:]; rest != "" {
			unit, rest = timeUnit(rest[0]), rest[1:]
		}
		if err != nil || unit == 0 {
			l.fail(key, fmt.Errorf("%q is no time", value))
			return otherwise
		}
		sum += time.Duration(n) * unit //nolint:gosec // 24 bits
	}
	return sum
}

// timeUnit is a unit by its letter, zero for none.
func timeUnit(letter byte) time.Duration {
	switch letter {
	case 's', 'S':
		return time.Second
	case 'm', 'M':
		return time.Minute
	case 'h', 'H':
		return time.Hour
	case 'd', 'D':
		return 24 * time.Hour
	case 'w', 'W':
		return 7 * 24 * time.Hour
	}
	return 0
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
