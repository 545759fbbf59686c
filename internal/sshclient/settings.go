package sshclient

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Defaults where the configuration says nothing. Other than OpenSSH's own client a dead
// peer is noticed by default.
const (
	DefaultConnectTimeout = 20 * time.Second
	DefaultAliveInterval  = 15 * time.Second
	DefaultAliveCountMax  = 3
)

// maxJumps bounds the hosts on the way to another one.
const maxJumps = 8

// HostKeyPolicy says what becomes of a host without a known key.
type HostKeyPolicy string

// The policies. A changed or revoked key is refused by each.
const (
	// HostKeyStrict refuses it.
	HostKeyStrict HostKeyPolicy = "strict"
	// HostKeyAcceptNew writes it down and goes on.
	HostKeyAcceptNew HostKeyPolicy = "accept-new"
)

// Environment is what the settings depend on beside the files. The zero value is of no
// use; [SystemEnvironment] gives that of this process.
type Environment struct {
	// Home is the user's home directory, User its login name.
	Home, User string
	// ConfigFile is read in place of the user's and the system's configuration; "none"
	// reads none, as OpenSSH's option -F.
	ConfigFile string
	// SystemConfig is the system's configuration; empty means none.
	SystemConfig string
	// Getenv looks up an environment variable.
	Getenv func(string) string
}

// Settings are what the configuration says about one destination. It is a value; two equal
// ones lead to the same account.
type Settings struct {
	// Name is the destination as it was given.
	Name string
	// Host is the name or address that is dialled, User the account.
	Host, User string
	Port       int
	// HostKeyAlias is looked up among known hosts in place of the host.
	HostKeyAlias string
	// KnownHosts are files; new keys go into the first.
	KnownHosts []string
	HostKeys   HostKeyPolicy
	// HashKnownHosts hides names of hosts in what is written.
	HashKnownHosts bool
	// Identities are files of private keys, Certificates of user certificates.
	Identities, Certificates []string
	// IdentitiesOnly keeps keys of the agent back that no file names.
	IdentitiesOnly bool
	// Agent is the agent's socket; empty means none.
	Agent string
	// Jumps are the hosts on the way, the first one first.
	Jumps []Settings
	// ProxyCommand is a shell command that is spoken to in place of a connection.
	ProxyCommand string
	// ConnectTimeout bounds each hop: dialling, handshake and authentication.
	ConnectTimeout time.Duration
	// AliveInterval is the time between requests that keep a connection alive, and
	// AliveCountMax how many may stay without an answer. A zero interval sends none.
	AliveInterval time.Duration
	AliveCountMax int
	// Ignored tells why the system's configuration does not count, empty when it does. It
	// may have what is not understood here, as "Match final"; the user's own must not.
	Ignored string
}

// Address is HOST:PORT.
func (s Settings) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// String is USER@HOST:PORT.
func (s Settings) String() string { return s.User + "@" + s.Address() }

// Read returns the settings of a destination. It connects to nothing.
//
// Errors: a *[DestinationError] for a text that is none, a *[ConfigError] for a
// configuration that cannot be used.
func Read(destination string, env Environment) (Settings, error) {
	files, ignored, err := openConfig(destination, env)
	if err != nil {
		return Settings{}, err
	}
	s, err := read(destination, env, files, true)
	s.Ignored = ignored
	return s, err
}

func read(destination string, env Environment, files configFiles, follow bool) (Settings, error) {
	d, err := ParseDestination(destination)
	if err != nil {
		return Settings{}, err
	}
	l := lookup{alias: d.Host, files: files, expand: expander{home: env.Home, getenv: env.Getenv}}
	s := Settings{Name: destination, Port: 22, HostKeys: HostKeyStrict}

	s.Host = strings.NewReplacer("%%", "%", "%h", d.Host).Replace(l.text("HostName", d.Host))
	s.User = firstOf(d.User, l.text("User", env.User))
	s.Port = d.Port
	if s.Port == 0 {
		s.Port = l.number("Port", 22, 65535)
	}
	l.expand.host, l.expand.user, l.expand.local, l.expand.alias = s.Host, s.User, env.User, d.Host
	l.expand.port = strconv.Itoa(s.Port)

	s.HostKeyAlias = l.text("HostKeyAlias", "")
	s.HashKnownHosts = l.yes("HashKnownHosts")
	ssh := filepath.Join(env.Home, ".ssh")
	s.KnownHosts = append(
		l.paths("UserKnownHostsFile", filepath.Join(ssh, "known_hosts"), filepath.Join(ssh, "known_hosts2")),
		l.paths("GlobalKnownHostsFile", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")...)
	switch word := strings.ToLower(l.text("StrictHostKeyChecking", "ask")); word {
	case "yes", "true", "ask": // nobody is there to be asked
	case "accept-new", "no", "false", "off":
		s.HostKeys = HostKeyAcceptNew
	default:
		l.fail("StrictHostKeyChecking", fmt.Errorf("%q is none of yes, no, ask, accept-new", word))
	}

	var named bool
	s.Identities, named = l.every("IdentityFile")
	if !named {
		for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
			s.Identities = append(s.Identities, filepath.Join(ssh, name))
		}
	}
	s.Certificates, _ = l.every("CertificateFile")
	s.IdentitiesOnly = l.yes("IdentitiesOnly")
	switch socket := l.text("IdentityAgent", "SSH_AUTH_SOCK"); {
	case socket == "SSH_AUTH_SOCK":
		s.Agent = env.Getenv("SSH_AUTH_SOCK")
	case strings.EqualFold(socket, "none"):
	default:
		s.Agent = l.expand.path(socket)
	}

	s.ConnectTimeout = l.seconds("ConnectTimeout", DefaultConnectTimeout)
	if s.ConnectTimeout == 0 {
		s.ConnectTimeout = DefaultConnectTimeout
	}
	s.AliveInterval = l.seconds("ServerAliveInterval", DefaultAliveInterval)
	if l.text("ServerAliveCountMax", "") == "0" {
		s.AliveInterval = 0 // no silence is too long
	} else {
		s.AliveCountMax = l.number("ServerAliveCountMax", DefaultAliveCountMax, 1000)
	}

	if follow {
		s.Jumps = l.jumps(env)
		if len(s.Jumps) == 0 {
			s.ProxyCommand = l.proxyCommand()
		}
	}
	if l.err != nil {
		return Settings{}, l.err
	}
	return s, nil
}

// proxyCommand is the ProxyCommand, empty for none.
func (l *lookup) proxyCommand() string {
	command := l.text("ProxyCommand", "none")
	if strings.EqualFold(command, "none") {
		return ""
	}
	return l.expand.tokens(command)
}

// jumps are the settings of ProxyJump's hosts.
func (l *lookup) jumps(env Environment) []Settings {
	value := l.text("ProxyJump", "none")
	if strings.EqualFold(value, "none") || value == "" {
		return nil
	}
	names := strings.Split(value, ",")
	if len(names) > maxJumps {
		l.fail("ProxyJump", fmt.Errorf("more than %d hosts", maxJumps))
		return nil
	}
	var all []Settings
	for i, name := range names {
		// Only the first host may have jumps of its own; the others are reached from it.
		hop, err := read(strings.TrimSpace(name), env, l.files, false)
		if err != nil {
			l.fail("ProxyJump", err)
			return nil
		}
		if i == 0 {
			before := lookup{alias: destinationHost(name), files: l.files, expand: l.expand}
			before.expand.alias, before.expand.host = before.alias, hop.Host
			before.expand.user, before.expand.port = hop.User, strconv.Itoa(hop.Port)
			hop.ProxyCommand = before.proxyCommand()
			if own := before.text("ProxyJump", "none"); !strings.EqualFold(own, "none") {
				l.fail("ProxyJump", fmt.Errorf("%s has a ProxyJump of its own: write all hosts in one ProxyJump, separated by commas", name))
				return nil
			}
		}
		all = append(all, hop)
	}
	return all
}

func destinationHost(s string) string {
	d, _ := ParseDestination(strings.TrimSpace(s))
	return d.Host
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
