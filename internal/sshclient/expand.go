package sshclient

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// expander fills the tokens of the configuration in: %h and the like, "~" and ${NAME}.
type expander struct {
	home, host, alias, user, local, port string
	getenv                               func(string) string
}

// tokens fills %-tokens in. One that is not known stays as it is.
func (e expander) tokens(s string) string {
	name, _ := os.Hostname() // without one %l stays empty
	short, _, _ := strings.Cut(name, ".")
	return strings.NewReplacer(
		"%%", "%", "%h", e.host, "%n", e.alias, "%p", e.port, "%r", e.user, "%u", e.local,
		"%d", e.home, "%l", name, "%L", short, "%i", uid(),
	).Replace(s)
}

// path fills everything in and makes it a path. A relative one counts from the home
// directory's .ssh, as in OpenSSH's own files.
func (e expander) path(s string) string {
	s = e.tokens(s)
	s = os.Expand(s, func(name string) string {
		if e.getenv == nil {
			return ""
		}
		return e.getenv(name)
	})
	if rest, ok := strings.CutPrefix(s, "~"); ok && (rest == "" || rest[0] == '/') {
		s = e.home + rest
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(e.home, ".ssh", s)
	}
	return filepath.Clean(s)
}

func uid() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Uid
}

// SystemEnvironment is the environment of this process. configFile may be empty.
func SystemEnvironment(getenv func(string) string, configFile string) Environment {
	env := Environment{Home: getenv("HOME"), ConfigFile: configFile, SystemConfig: "/etc/ssh/ssh_config", Getenv: getenv}
	if u, err := user.Current(); err == nil {
		env.User = u.Username
		env.Home = firstOf(env.Home, u.HomeDir)
	}
	return env
}
