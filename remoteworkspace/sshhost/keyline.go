package sshhost

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// minRSABits is the shortest RSA key that may log in.
const minRSABits = 2048

// AuthorizedKey is a key that may log in, and its restrictions.
type AuthorizedKey struct {
	Key     ssh.PublicKey
	Comment string
	// From bounds the addresses it may be used from; nil means any.
	From *AddressList
	// Expires is when it stops to be valid; zero means never.
	Expires time.Time
	// NoPTY and NoForward withhold terminals and forwarded connections.
	NoPTY, NoForward bool
}

// ParseAuthorizedKey reads one line in the form of OpenSSH's authorized_keys. The options
// from, expiry-time, restrict, [no-]pty and [no-]port-forwarding are kept; those about
// agents, X11 and rc files change nothing, as there are none. Every other option
// (command, environment, permitopen, ...) is refused: ignoring a restriction would
// widen what the key may do. C175.
func ParseAuthorizedKey(line string) (AuthorizedKey, error) {
	key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return AuthorizedKey{}, errors.New("not a public key in the form of authorized_keys")
	}
	if strings.TrimSpace(string(rest)) != "" {
		return AuthorizedKey{}, errors.New("more than one line")
	}
	k := AuthorizedKey{Key: key, Comment: comment}
	if err := CheckKey(key); err != nil {
		return AuthorizedKey{}, err
	}
	for _, o := range options {
		if err := k.option(o); err != nil {
			return AuthorizedKey{}, err
		}
	}
	return k, nil
}

// CheckKey refuses keys that are too weak, and certificates in the place of keys.
func CheckKey(key ssh.PublicKey) error {
	if _, ok := key.(*ssh.Certificate); ok {
		return errors.New("it is a certificate; authorise the key of the authority that signed it")
	}
	if key.Type() == "ssh-dss" {
		return errors.New("DSA keys are not safe; use ed25519")
	}
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() < minRSABits {
			return fmt.Errorf("an RSA key of %d bits; at least %d are needed", r.N.BitLen(), minRSABits)
		}
	}
	return nil
}

// option applies one option.
func (k *AuthorizedKey) option(o string) error {
	name, value, hasValue := strings.Cut(o, "=")
	name = strings.ToLower(name)
	if hasValue {
		unquoted, err := unquoteOption(value)
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
		value = unquoted
	}
	switch {
	case name == "from" && hasValue:
		list, err := ParseAddressList(value)
		if err != nil {
			return fmt.Errorf("option from: %w", err)
		}
		k.From = list
		return nil
	case name == "expiry-time" && hasValue:
		t, err := parseExpiry(value)
		if err != nil {
			return fmt.Errorf("option expiry-time: %w", err)
		}
		k.Expires = t
		return nil
	}
	if hasValue {
		return fmt.Errorf("option %q is not supported, and a restriction is not ignored", name)
	}
	switch name {
	case "restrict":
		k.NoPTY, k.NoForward = true, true
	case "pty":
		k.NoPTY = false
	case "no-pty":
		k.NoPTY = true
	case "port-forwarding":
		k.NoForward = false
	case "no-port-forwarding":
		k.NoForward = true
	case "agent-forwarding", "no-agent-forwarding", "x11-forwarding", "no-x11-forwarding", "user-rc", "no-user-rc":
	default:
		return fmt.Errorf("option %q is not supported, and a restriction is not ignored", name)
	}
	return nil
}

// unquoteOption removes the quotes of a value; \" stands for a quote.
func unquoteOption(v string) (string, error) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", errors.New("its value is not in double quotes")
	}
	return strings.ReplaceAll(v[1:len(v)-1], `\"`, `"`), nil
}

// parseExpiry reads YYYYMMDD[HHMM[SS]] with an optional Z; without it in local time, as
// OpenSSH does.
func parseExpiry(v string) (time.Time, error) {
	loc := time.Local
	if cut, ok := strings.CutSuffix(v, "Z"); ok {
		v, loc = cut, time.UTC
	}
	for _, form := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(v) == len(form) {
			return time.ParseInLocation(form, v, loc)
		}
	}
	return time.Time{}, fmt.Errorf("%q is not YYYYMMDD[HHMM[SS]][Z]", v)
}

// AddressList is a list of addresses and networks as in from= and source-address. An
// entry that begins with ! excludes, whatever else matches.
type AddressList struct {
	text    string
	permit  []netip.Prefix
	exclude []netip.Prefix
}

// ParseAddressList reads addresses and networks in CIDR form, separated by commas. Host
// names and wildcards are refused: names can be forged by who answers for them.
func ParseAddressList(text string) (*AddressList, error) {
	l := &AddressList{text: text}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		word, not := strings.CutPrefix(entry, "!")
		p, err := netip.ParsePrefix(word)
		if err != nil {
			a, aerr := netip.ParseAddr(word)
			if aerr != nil {
				return nil, fmt.Errorf("%q is neither an address nor a network in CIDR form", entry)
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		} else if p != p.Masked() {
			return nil, fmt.Errorf("%q has bits beyond its mask", entry)
		}
		if not {
			l.exclude = append(l.exclude, p)
		} else {
			l.permit = append(l.permit, p)
		}
	}
	return l, nil
}

// Matches reports whether an address is on the list. An address that is not known is not.
func (l *AddressList) Matches(a netip.Addr) bool {
	if l == nil {
		return true
	}
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return false
	}
	for _, p := range l.exclude {
		if p.Contains(a) {
			return false
		}
	}
	for _, p := range l.permit {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// String is the list as it was written.
func (l *AddressList) String() string { return l.text }
