package sandbox

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// redacted stands for the value of an environment variable in records and logs.
const redacted = "(set)"

// String tells the names, never a value: an environment holds secrets.
func (e Env) String() string {
	return fmt.Sprintf("Env[%s]", strings.Join(slices.Sorted(maps.Keys(e)), " "))
}

// GoString is String, so that %#v shows no value either.
func (e Env) GoString() string { return e.String() }

// LogValue logs the names, never a value.
func (e Env) LogValue() slog.Value {
	return slog.StringValue(strings.Join(slices.Sorted(maps.Keys(e)), " "))
}

// Clone returns a copy; of a nil environment an empty one.
func (e Env) Clone() Env {
	c := make(Env, len(e)+1)
	maps.Copy(c, e)
	return c
}

// Redacted is c without the values of environment variables: what is stored,
// listed and logged. Their names stay.
func (c Config) Redacted() Config {
	if len(c.Env) == 0 {
		return c
	}
	env := make(map[string]string, len(c.Env))
	for name := range c.Env {
		env[name] = redacted
	}
	c.Env = env
	return c
}

// String shows the configuration without the values of environment variables.
func (c Config) String() string {
	type plain Config // without the methods of Config
	return fmt.Sprintf("%+v", plain(c.Redacted()))
}

// GoString is String, so that %#v shows no value either.
func (c Config) GoString() string { return c.String() }

// LogValue logs the configuration without the values of environment variables.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// discard returns a logger that may be used when l is nil.
func discard(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
