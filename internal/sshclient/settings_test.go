package sshclient

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	p := newPlace(t)
	got := p.read("box")
	want := Settings{
		Name: "box", Host: "box", User: "me", Port: 22, HostKeys: HostKeyStrict,
		KnownHosts:     []string{p.path(".ssh/known_hosts"), p.path(".ssh/known_hosts2"), "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
		Identities:     []string{p.path(".ssh/id_ed25519"), p.path(".ssh/id_ecdsa"), p.path(".ssh/id_rsa")},
		ConnectTimeout: DefaultConnectTimeout, AliveInterval: DefaultAliveInterval, AliveCountMax: DefaultAliveCountMax,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("settings %+v\nwant     %+v", got, want)
	}
}

// One setting, as the configuration has it. C093 C095
func TestSettings(t *testing.T) {
	home := newPlace(t)
	included := filepath.Dir(home.file(".ssh/more/one", "Host box\n Port 2023\n"))
	home.env.Getenv = func(name string) string {
		return map[string]string{"SSH_AUTH_SOCK": "/run/agent", "DIR": "/var/dir"}[name]
	}
	ssh := home.path(".ssh")
	uid := strings.TrimSpace(uid())
	for name, c := range map[string]struct {
		config string
		get    func(Settings) any
		want   any
	}{
		"pattern":             {"Host *.example\n Port 1\nHost bo?\n Port 2\nHost *\n Port 3", port, 2},
		"negated pattern":     {"Host * !box\n Port 1\nHost *\n Port 3", port, 3},
		"first wins":          {"Port 5\nHost box\n Port 6", port, 5},
		"equals sign":         {"Host=box\n  Port = 7", port, 7},
		"case":                {"hOST box\n pORT 8", port, 8},
		"comment":             {"# Port 1\nPort 9 # nine", port, 9},
		"include":             {"Include " + included + "/*", port, 2023},
		"host name":           {"HostName %h.example", hostName, "box.example"},
		"host name percent":   {"HostName 100%%.example", hostName, "100%.example"},
		"user":                {"User other", func(s Settings) any { return s.User }, "other"},
		"strict":              {"StrictHostKeyChecking yes", policy, HostKeyStrict},
		"asks":                {"StrictHostKeyChecking ask", policy, HostKeyStrict},
		"accepts":             {"StrictHostKeyChecking accept-new", policy, HostKeyAcceptNew},
		"no":                  {"StrictHostKeyChecking no", policy, HostKeyAcceptNew},
		"agent":               {"", agentOf, "/run/agent"},
		"agent by name":       {"IdentityAgent SSH_AUTH_SOCK", agentOf, "/run/agent"},
		"no agent":            {"IdentityAgent none", agentOf, ""},
		"agent quoted":        {`IdentityAgent "~/the agent"`, agentOf, home.path("the agent")},
		"agent of a variable": {"IdentityAgent ${DIR}/agent", agentOf, "/var/dir/agent"},
		"agent by a dollar":   {"IdentityAgent $SSH_AUTH_SOCK", agentOf, "/run/agent"},
		"identities":          {"IdentityFile ~/a\nIdentityFile %d/b\nIdentityFile /c-%h-%n-%p-%r-%u-%i-%%", identities, []string{home.path("a"), home.path("b"), "/c-box-box-22-me-me-" + uid + "-%"}},
		"identity of tokens":  {"HostName real\nUser u\nPort 4\nIdentityFile /%h.%n.%r.%p", identities, []string{"/real.box.u.4"}},
		"identity quoted":     {`IdentityFile "~/my key"`, identities, []string{home.path("my key")}},
		"identity relative":   {"IdentityFile key", identities, []string{ssh + "/key"}},
		"identity none":       {"IdentityFile none", identities, []string(nil)},
		"certificate":         {"CertificateFile ~/c", func(s Settings) any { return s.Certificates }, []string{home.path("c")}},
		"identities only":     {"IdentitiesOnly yes", func(s Settings) any { return s.IdentitiesOnly }, true},
		"known hosts":         {"UserKnownHostsFile ~/a ~/b\nGlobalKnownHostsFile none", known, []string{home.path("a"), home.path("b")}},
		"known hosts quoted":  {"UserKnownHostsFile \"~/a b\" ~/c\nGlobalKnownHostsFile none", known, []string{home.path("a b"), home.path("c")}},
		"known hosts none":    {"UserKnownHostsFile none\nGlobalKnownHostsFile none", known, []string(nil)},
		"hashed":              {"HashKnownHosts yes", func(s Settings) any { return s.HashKnownHosts }, true},
		"alias":               {"HostKeyAlias other", func(s Settings) any { return s.HostKeyAlias }, "other"},
		"timeout":             {"ConnectTimeout 7", timeout, 7 * time.Second},
		"timeout none":        {"ConnectTimeout none", timeout, DefaultConnectTimeout},
		"timeout zero":        {"ConnectTimeout 0", timeout, DefaultConnectTimeout},
		"timeout with a unit": {"ConnectTimeout 1m30", timeout, 90 * time.Second},
		"interval":            {"ServerAliveInterval 2m", interval, 2 * time.Minute},
		"no interval":         {"ServerAliveInterval 0", interval, time.Duration(0)},
		"interval of a day":   {"ServerAliveInterval 1d", interval, 24 * time.Hour},
		"count":               {"ServerAliveCountMax 9", func(s Settings) any { return s.AliveCountMax }, 9},
		"count of zero":       {"ServerAliveCountMax 0", interval, time.Duration(0)},
		"proxy command":       {"HostName real\nProxyCommand nc -x %% %h %p %r %n", proxyCommand, "nc -x % real 22 me box"},
		"proxy command none":  {"ProxyCommand none", proxyCommand, ""},
		"jump none":           {"ProxyJump none\nProxyCommand x", proxyCommand, "x"},
		"jump over command":   {"Host box\n ProxyJump j\n ProxyCommand x", proxyCommand, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home.file(".ssh/config", c.config+"\n")
			s, err := Read("box", home.env)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.get(s); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %#v, want %#v", got, c.want)
			}
		})
	}
}

func port(s Settings) any         { return s.Port }
func hostName(s Settings) any     { return s.Host }
func policy(s Settings) any       { return s.HostKeys }
func agentOf(s Settings) any      { return s.Agent }
func identities(s Settings) any   { return s.Identities }
func known(s Settings) any        { return s.KnownHosts }
func timeout(s Settings) any      { return s.ConnectTimeout }
func interval(s Settings) any     { return s.AliveInterval }
func proxyCommand(s Settings) any { return s.ProxyCommand }

// What cannot be used is told, with the keyword.
func TestBadSettings(t *testing.T) {
	for setting, config := range map[string]string{
		"Port":                  "Port 0",
		"ServerAliveInterval":   "ServerAliveInterval soon",
		"ConnectTimeout":        "ConnectTimeout -1",
		"StrictHostKeyChecking": "StrictHostKeyChecking perhaps",
		"ServerAliveCountMax":   "ServerAliveCountMax many",
		"ProxyJump":             "Host box\n ProxyJump a,,b",
		"":                      "Match exec true\n Port 1",
	} {
		p := newPlace(t, config)
		_, err := Read("box", p.env)
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Setting != setting || bad.Host != "box" {
			t.Errorf("%q: %v", config, err)
		}
	}
	p := newPlace(t)
	p.env.ConfigFile = p.path("missing")
	var bad *ConfigError
	if _, err := Read("box", p.env); !errors.As(err, &bad) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file that was named: %v", err)
	}
	var no *DestinationError
	if _, err := Read("-x", p.env); err == nil || errors.As(err, &no) == errors.As(err, &bad) {
		t.Errorf("no destination: %v", err)
	}
}

// Which files count.
func TestConfigFiles(t *testing.T) {
	p := newPlace(t, "Host box", " Port 1")
	p.env.SystemConfig = p.file("system", "Host *\n Port 2\n User sys\n")
	if s := p.read("box"); s.Port != 1 || s.User != "sys" {
		t.Errorf("the user's before the system's: port %d, user %s", s.Port, s.User)
	}
	if s := p.read("you@box:4"); s.Port != 4 || s.User != "you" {
		t.Errorf("the destination before all: port %d, user %s", s.Port, s.User)
	}
	p.file("system", "Match final all\n Port 5\n")
	if s := p.read("other"); s.Port != 22 || !strings.Contains(s.Ignored, p.path("system")) {
		t.Errorf("a system's file that is not understood: port %d, ignored %q", s.Port, s.Ignored)
	}
	p.env.ConfigFile = p.file("other", "Host box\n Port 3\n")
	if s := p.read("box"); s.Port != 3 || s.User != "me" {
		t.Errorf("a file that was named, alone: port %d, user %s", s.Port, s.User)
	}
	p.env.ConfigFile = "none"
	if s := p.read("box"); s.Port != 22 || s.User != "me" {
		t.Errorf("none: port %d, user %s", s.Port, s.User)
	}
}

func TestJumps(t *testing.T) {
	p := newPlace(t, "Host j1", " HostName one", " Port 1", " User u1", "Host j2", " HostName two", "Host box", " ProxyJump j1,x@j2:9 , [::1]:7")
	s := p.read("box")
	got := make([]string, 0, 3)
	for _, j := range s.Jumps {
		got = append(got, j.String())
	}
	if want := []string{"u1@one:1", "x@two:9", "me@[::1]:7"}; !slices.Equal(got, want) {
		t.Errorf("jumps %q, want %q", got, want)
	}

	p = newPlace(t, "Host j1", " ProxyCommand through %h", "Host box", " ProxyJump j1")
	if s := p.read("box"); len(s.Jumps) != 1 || s.Jumps[0].ProxyCommand != "through j1" {
		t.Errorf("the first host's ProxyCommand: %+v", s.Jumps)
	}
	for name, config := range map[string]string{
		"of its own": "Host j1\n ProxyJump j2\nHost box\n ProxyJump j1",
		"too many":   "Host box\n ProxyJump a,b,c,d,e,f,g,h,i",
		"option":     "Host box\n ProxyJump -oProxyCommand=id",
	} {
		p := newPlace(t, config)
		var bad *ConfigError
		if _, err := Read("box", p.env); !errors.As(err, &bad) || bad.Setting != "ProxyJump" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
