package sshhost

import (
	"crypto/rand"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// impostor offers one key and signs with another: it does not hold what it offers.
type impostor struct {
	offered ssh.PublicKey
	signs   ssh.Signer
}

func (i impostor) PublicKey() ssh.PublicKey { return i.offered }
func (i impostor) Sign(r io.Reader, data []byte) (*ssh.Signature, error) {
	return i.signs.Sign(r, data)
}

// The key that signed decides, whatever was offered before and in whatever order. Key b may
// do everything in workspace one, key a may have no terminal. C175
func TestSignerDecides(t *testing.T) {
	t.Parallel()
	b := newKey(t)
	r := newRig(t, func(o *Options) {
		ws := o.Policy.Workspaces["one"]
		ws.Keys[0].NoPTY = true
		ws.Keys = append(ws.Keys, AuthorizedKey{Key: b.PublicKey()})
		o.Policy.Workspaces["one"] = ws
	})
	a := r.key
	fakeB := impostor{b.PublicKey(), a}
	for name, tc := range map[string]struct {
		keys  []ssh.Signer
		by    ssh.Signer // nil: refused
		gives bool       // a terminal
	}{
		"a":                   {[]ssh.Signer{a}, a, false},
		"b":                   {[]ssh.Signer{b}, b, true},
		"b forged, then a":    {[]ssh.Signer{fakeB, a}, nil, false}, // a wrong signature ends the connection
		"b offered only":      {[]ssh.Signer{fakeB}, nil, false},
		"other's key, then a": {[]ssh.Signer{r.other, a}, a, false},
		"other's key only":    {[]ssh.Signer{r.other}, nil, false},
		"other's key, then b": {[]ssh.Signer{r.other, newKey(t), b, a}, b, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := r.try("one", tc.keys...)
			if tc.by == nil {
				if err == nil {
					t.Fatal("it was let in")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.RequestPty("xterm", 24, 80, nil); (err == nil) != tc.gives {
				t.Errorf("a terminal: %v, want given %v", err, tc.gives)
			}
			logins := linesWith(r.audit.String(), `"event":"login"`)
			if want := ssh.FingerprintSHA256(tc.by.PublicKey()); len(logins) == 0 || !strings.Contains(logins[len(logins)-1], want) {
				t.Errorf("the audit log does not name %s: %q", want, logins)
			}
		})
	}
}

func linesWith(text, part string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			out = append(out, line)
		}
	}
	return out
}

// meta is a connection's name for the library's callbacks.
type meta struct {
	ssh.ConnMetadata
	user string
}

func (m meta) User() string { return m.user }

// What the callbacks remember of keys that were only offered is nothing. C175
func TestOfferedKeysLeaveNoTrace(t *testing.T) {
	t.Parallel()
	a, b := newKey(t).PublicKey(), newKey(t).PublicKey()
	s, err := New(Options{HostKeys: []ssh.Signer{newKey(t)}, Opener: &bwrapOpener{}, Policy: Policy{Workspaces: map[string]Workspace{
		"one": {Keys: []AuthorizedKey{{Key: a, NoPTY: true}, {Key: b}}},
		"two": {Keys: []AuthorizedKey{{Key: b}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := (&conn{srv: s}).authConfig()
	var offered *ssh.Permissions
	for _, o := range []struct {
		user string
		key  ssh.PublicKey
		ok   bool
	}{{"two", b, true}, {"one", a, true}, {"two", a, false}, {"one", b, true}} {
		p, err := cfg.PublicKeyCallback(meta{user: o.user}, o.key)
		if (err == nil) != o.ok {
			t.Fatalf("%s: %v", o.user, err)
		}
		if err == nil {
			offered = p
		}
	}
	got, err := cfg.VerifiedPublicKeyCallback(meta{user: "one"}, a, offered, ssh.KeyAlgoED25519)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := got.ExtraData[grantKey{}].(*grant)
	if g == nil || g.workspace != "one" || g.pty || g.fingerprint != ssh.FingerprintSHA256(a) {
		t.Errorf("grant %+v", g)
	}
	if _, err := cfg.VerifiedPublicKeyCallback(meta{user: "two"}, a, offered, ssh.KeyAlgoED25519); err == nil {
		t.Error("a key of workspace one opened workspace two")
	}
}

// More failures than allowed end the connection, also when the right key comes after. C175
func TestAuthTries(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Limits.AuthTries = 3 })
	var keys []ssh.Signer
	for range 9 {
		keys = append(keys, newKey(t))
	}
	if c, err := r.try("one", append(keys, r.key)...); err == nil {
		c.Close()
		t.Error("it was let in after nine wrong keys")
	}
	if _, err := ssh.Dial("tcp", r.addr, &ssh.ClientConfig{
		User: "one", Auth: []ssh.AuthMethod{ssh.Password("x"), ssh.KeyboardInteractive(func(string, string, []string, []bool) ([]string, error) { return nil, nil })},
		HostKeyCallback: ssh.FixedHostKey(r.host.PublicKey()),
	}); err == nil || !strings.Contains(err.Error(), "no supported methods remain") {
		t.Errorf("passwords: %v", err)
	}
}

// certificate signs one for workspace one that is right, after a change.
func certificate(t *testing.T, ca, key ssh.Signer, now time.Time, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	cert := &ssh.Certificate{
		Key: key.PublicKey(), CertType: ssh.UserCert, KeyId: "somebody", ValidPrincipals: []string{"one"},
		ValidAfter: uint64(now.Add(-time.Hour).Unix()), ValidBefore: uint64(now.Add(time.Hour).Unix()),
	}
	if change != nil {
		change(cert)
	}
	principals := cert.ValidPrincipals
	if len(principals) == 0 {
		cert.ValidPrincipals = []string{"any"} // the library signs none without
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	cert.ValidPrincipals = principals
	s, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Certificates: authority, kind, principal, time, address, options that are not kept.
func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, stranger, key := newKey(t), newKey(t), newKey(t)
	now := time.Unix(1_800_000_000, 0)
	p := Policy{Workspaces: map[string]Workspace{
		"one": {Authorities: []ssh.PublicKey{ca.PublicKey()}, Forward: true},
		"two": {Keys: []AuthorizedKey{{Key: ca.PublicKey()}}},
	}}
	here := netip.MustParseAddr("192.0.2.7")
	for name, tc := range map[string]struct {
		by        ssh.Signer
		workspace string
		change    func(*ssh.Certificate)
		refusal   string // "" is admitted
	}{
		"right":              {ca, "one", nil, ""},
		"another authority":  {stranger, "one", nil, "authority"},
		"another workspace":  {ca, "two", nil, "authority"},
		"host certificate":   {ca, "one", func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, "not a user certificate"},
		"no principal":       {ca, "one", func(c *ssh.Certificate) { c.ValidPrincipals = nil }, "no principal"},
		"another principal":  {ca, "one", func(c *ssh.Certificate) { c.ValidPrincipals = []string{"two"} }, "principal"},
		"expired":            {ca, "one", func(c *ssh.Certificate) { c.ValidBefore = uint64(now.Unix()) }, "expired"},
		"not yet valid":      {ca, "one", func(c *ssh.Certificate) { c.ValidAfter = uint64(now.Unix() + 1) }, "not yet valid"},
		"from here":          {ca, "one", func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "192.0.2.0/24"} }, ""},
		"from elsewhere":     {ca, "one", func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "198.51.100.0/24"} }, "address"},
		"from nonsense":      {ca, "one", func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"source-address": "*"} }, "source-address"},
		"forced command":     {ca, "one", func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"force-command": "true"} }, "force-command"},
		"unknown option":     {ca, "one", func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x@y": ""} }, "x@y"},
		"unknown extension":  {ca, "one", func(c *ssh.Certificate) { c.Extensions = map[string]string{"x@y": ""} }, ""},
		"with a terminal":    {ca, "one", func(c *ssh.Certificate) { c.Extensions = map[string]string{"permit-pty": ""} }, ""},
		"with forwarding":    {ca, "one", func(c *ssh.Certificate) { c.Extensions = map[string]string{"permit-port-forwarding": ""} }, ""},
		"an authority's key": {ca, "one", func(c *ssh.Certificate) { c.Key = ca.PublicKey() }, ""},
	} {
		holder := key
		if name == "an authority's key" {
			holder = ca
		}
		s := certificate(t, tc.by, holder, now, tc.change)
		g, err := p.authorize(tc.workspace, s.PublicKey(), here, now)
		if (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
			t.Errorf("%s: %v, want %q", name, err, tc.refusal)
		}
		if err == nil && (g.pty != strings.Contains(name, "terminal") || g.forward != strings.Contains(name, "forwarding") || g.keyID != "somebody") {
			t.Errorf("%s: grant %+v", name, g)
		}
	}
	// The authority's own key is no key of the workspace.
	if _, err := p.authorize("one", ca.PublicKey(), here, now); err == nil {
		t.Error("the authority's key was let in")
	}
}

// A certificate over the wire, and a forged one.
func TestCertificateLogin(t *testing.T) {
	t.Parallel()
	ca, stranger := newKey(t), newKey(t)
	r := newRig(t, func(o *Options) {
		ws := o.Policy.Workspaces["one"]
		ws.Authorities = []ssh.PublicKey{ca.PublicKey()}
		o.Policy.Workspaces["one"] = ws
	})
	c, err := r.try("one", certificate(t, ca, newKey(t), time.Now(), nil))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if c, err := r.try("one", certificate(t, stranger, newKey(t), time.Now(), nil)); err == nil {
		c.Close()
		t.Error("a stranger's certificate was let in")
	}
	eventually(t, "the record", func() bool {
		got := r.audit.String()
		return strings.Contains(got, `"keyId":"somebody"`) && strings.Contains(got, ssh.FingerprintSHA256(ca.PublicKey()))
	})
}

// Options of keys: kept, harmless, or refused; never ignored. C175
func TestKeyOptions(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(newKey(t).PublicKey())))
	for options, refusal := range map[string]string{
		``:              "",
		`restrict `:     "",
		`restrict,pty `: "",
		`no-agent-forwarding,no-X11-forwarding,no-user-rc,no-pty,no-port-forwarding `: "",
		`from="192.0.2.0/24,!192.0.2.9,2001:db8::/32" `:                               "",
		`expiry-time="20300101Z" `:                                                    "",
		`command="true" `:                                                             "command",
		`COMMAND="true" `:                                                             "command",
		`environment="A=b" `:                                                          "environment",
		`permitopen="localhost:1" `:                                                   "permitopen",
		`permitlisten="1" `:                                                           "permitlisten",
		`principals="x" `:                                                             "principals",
		`tunnel="0" `:                                                                 "tunnel",
		`cert-authority `:                                                             "cert-authority",
		`verify-required `:                                                            "verify-required",
		`no-touch-required `:                                                          "no-touch-required",
		`from="*.example.org" `:                                                       "from",
		`from="" `:                                                                    "from",
		`from `:                                                                       "from",
		`expiry-time="soon" `:                                                         "expiry-time",
		`restrict="x" `:                                                               "restrict",
		`zos-key-ring-label="a" `:                                                     "zos-key-ring-label",
		`restrict,command="a,b \" c",pty `:                                            "command",
	} {
		_, err := ParseAuthorizedKey(options + key + " me@here")
		if (err == nil) != (refusal == "") || err != nil && !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: %v, want %q", options, err, refusal)
		}
	}
	k, err := ParseAuthorizedKey(`restrict,pty,from="192.0.2.0/24,!192.0.2.9",expiry-time="20300101Z" ` + key + " me@here")
	if err != nil || !k.NoForward || k.NoPTY || k.Comment != "me@here" || k.Expires.UTC().Year() != 2030 {
		t.Errorf("%+v, %v", k, err)
	}
	for addr, want := range map[string]bool{"192.0.2.1": true, "192.0.2.9": false, "::ffff:192.0.2.1": true, "198.51.100.1": false} {
		if k.From.Matches(netip.MustParseAddr(addr)) != want {
			t.Errorf("from %s: want %v", addr, want)
		}
	}
	if k.From.Matches(netip.Addr{}) {
		t.Error("an unknown address matches")
	}
	for _, bad := range []string{"", "nonsense", key + "\n" + key, "ssh-rsa AAAA"} {
		if _, err := ParseAuthorizedKey(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// Expired keys and foreign addresses are refused at every login.
func TestKeyRestrictions(t *testing.T) {
	t.Parallel()
	k := newKey(t).PublicKey()
	now := time.Unix(1_800_000_000, 0)
	list, err := ParseAddressList("192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Workspaces: map[string]Workspace{"one": {Keys: []AuthorizedKey{{Key: k, From: list, Expires: now.Add(time.Second)}}}}}
	for _, tc := range []struct {
		from string
		at   time.Time
		ok   bool
	}{{"192.0.2.1", now, true}, {"192.0.3.1", now, false}, {"192.0.2.1", now.Add(time.Second), false}} {
		if _, err := p.authorize("one", k, netip.MustParseAddr(tc.from), tc.at); (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// Names of workspaces.
func TestValidName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "demo", "a-b.c_d", "0", strings.Repeat("x", MaxName)} {
		if err := ValidName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "-a", "a/", "../x", "A", "a b", "a\n", "a\x00", strings.Repeat("x", MaxName+1)} {
		if ValidName(bad) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
