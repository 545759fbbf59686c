package sshclient

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentinels for errors.Is.
var (
	// ErrUnreachable: no connection to the server, or it is no SSH server.
	ErrUnreachable = errors.New("the host cannot be reached")
	// ErrHostKeyUnknown: the host has no key in the files of known hosts.
	ErrHostKeyUnknown = errors.New("the host's key is not known")
	// ErrHostKeyChanged: the host has another key than the known one.
	ErrHostKeyChanged = errors.New("the host's key is another one than the known")
	// ErrHostKeyRevoked: the host's key is marked as revoked.
	ErrHostKeyRevoked = errors.New("the host's key is revoked")
	// ErrAuthentication: the server accepts none of the keys.
	ErrAuthentication = errors.New("the server accepts none of the keys")
	// ErrCut: the connection was there and is gone.
	ErrCut = errors.New("the connection is cut")
	// ErrSessions: the server opens no session on a fresh connection.
	ErrSessions = errors.New("the server opens no session")
)

// DestinationError tells a text that is no destination.
type DestinationError struct{ Text, Rule string }

// Error gives one line.
func (e *DestinationError) Error() string {
	return fmt.Sprintf("%q is no SSH destination (USER@HOST[:PORT] or a Host of the SSH configuration): %s", e.Text, e.Rule)
}

// ConfigError tells a setting of the SSH configuration that cannot be used.
type ConfigError struct {
	// Host is the destination; Setting the keyword, empty when a file cannot be read.
	Host, Setting string
	Err           error
}

// Error gives one line.
func (e *ConfigError) Error() string {
	if e.Setting == "" {
		return fmt.Sprintf("the SSH configuration of %s: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("the SSH configuration of %s: %s: %v", e.Host, e.Setting, e.Err)
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// DialError tells why there is no connection. It matches one of the sentinels.
type DialError struct {
	// Host is the hop that failed, as USER@HOST:PORT.
	Host string
	// Remedy is what to do next.
	Remedy string
	// Err matches the sentinel and the cause.
	Err error
}

// Error gives one line.
func (e *DialError) Error() string { return fmt.Sprintf("ssh %s: %v", e.Host, e.Err) }

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// maxTold bounds what OneLine leaves, in bytes.
const maxTold = 300

// OneLine makes what a server says fit for one line of an error or a log: nothing is left
// that a terminal obeys or that changes the order of the text.
func OneLine(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, s))
	if len(s) <= maxTold {
		return s
	}
	end := maxTold
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
