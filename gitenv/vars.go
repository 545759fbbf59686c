package gitenv

import (
	"strconv"
	"strings"
)

// Names of the environment variables git reads configuration from. ParametersVar is the only one this package ever
// writes; the COUNT family is described so that callers can tell what git will see ([Effective]).
const (
	// ParametersVar holds a list of quoted items, written by git itself for `git -c`.
	ParametersVar = "GIT_CONFIG_PARAMETERS"
	// CountVar holds the number of GIT_CONFIG_KEY_n and GIT_CONFIG_VALUE_n pairs.
	CountVar = "GIT_CONFIG_COUNT"
	// keyPrefix and valuePrefix are followed by a decimal index that starts at 0.
	keyPrefix   = "GIT_CONFIG_KEY_"
	valuePrefix = "GIT_CONFIG_VALUE_"
)

// KeyVar returns the name of the variable that holds the n-th key of the COUNT family, counted from 0.
func KeyVar(n int) string { return keyPrefix + strconv.Itoa(n) }

// ValueVar returns the name of the variable that holds the n-th value of the COUNT family, counted from 0.
func ValueVar(n int) string { return valuePrefix + strconv.Itoa(n) }

// isConfigCarrier reports whether git takes configuration from the variable of this name.
func isConfigCarrier(name string) bool {
	return name == ParametersVar || name == CountVar ||
		strings.HasPrefix(name, keyPrefix) || strings.HasPrefix(name, valuePrefix)
}

// LookupIn returns a function with the meaning of os.LookupEnv over env, a list of NAME=value entries. Of several
// entries with one name the last counts, as it does for os/exec.
func LookupIn(env []string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for i := len(env) - 1; i >= 0; i-- {
			if n, v, ok := cutEntry(env[i]); ok && n == name {
				return v, true
			}
		}
		return "", false
	}
}

// cutEntry splits NAME=value. An entry without "=" or with an empty name is not a variable; such entries are passed
// along untouched wherever an environment is copied.
func cutEntry(entry string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(entry, "=")
	return name, value, ok && name != ""
}
