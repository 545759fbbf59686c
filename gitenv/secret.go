package gitenv

import (
	"slices"
	"strings"
)

// A Reason says why an entry is withheld.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	// ReasonGitCarrier is a variable git takes configuration from. It may hold credentials, and as an override it would
	// replace the base instead of adding to it.
	ReasonGitCarrier Reason = "carries git configuration"
	// ReasonName is a variable or a setting that by its name holds or leads to a credential.
	ReasonName Reason = "has the name of a credential"
	// ReasonForm is a value, or a key, with a credential in it: a URL with a password, an authorization header, a
	// private key.
	ReasonForm Reason = "contains a credential"
	// ReasonInherited is a value that contains a credential the child inherits under another name.
	ReasonInherited Reason = "contains an inherited credential"
	// ReasonNotVariable is an entry that is not NAME=value.
	ReasonNotVariable Reason = "is not a variable"
)

// minSecret is the length in bytes below which an inherited value is not searched for in others: shorter ones, such as
// "1", "true" or "false", cannot be told from ordinary words.
const minSecret = 6

// secretParts are substrings of an upper-case variable name that mean a credential.
var secretParts = [...]string{
	"SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "PASSFILE", "PASSCODE", "ASKPASS", "CREDENTIAL", "APIKEY",
	"PRIVATEKEY", "ACCESSKEY", "SSLKEY", "COOKIE", "AUTHORIZATION", "NETRC", "KUBECONFIG", "EXTRAHEADER",
}

// secretWords are whole words of an upper-case variable name, divided at "_", "-" and ".", that mean a credential.
var secretWords = [...]string{"AUTH", "KEY", "KEYS", "PASS", "PAT", "BEARER", "SMTPPASS", "JWT", "DSN", "CREDS", "CRED"}

// isSecretName reports whether a variable of this name is taken to hold a credential, or the way to one, such as the
// socket of an SSH agent.
func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	if name == "PWD" || name == "OLDPWD" {
		return false
	}
	if name == "GPG_AGENT_INFO" {
		return true
	}
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for _, word := range words {
		if word == "PWD" || slices.Contains(secretWords[:], word) {
			return true
		}
	}
	return false
}

// hasSecretForm reports whether text contains something that is a credential wherever it stands.
func hasSecretForm(text string) bool {
	lower := strings.ToLower(text)
	for _, mark := range [...]string{"authorization:", "private-token:", "cookie:"} {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	for _, scheme := range [...]string{"bearer ", "basic "} {
		if rest, ok := strings.CutPrefix(lower, scheme); ok && strings.TrimSpace(rest) != "" && !strings.Contains(rest, " ") {
			return true
		}
	}
	if strings.Contains(text, "-----BEGIN ") && strings.Contains(text, "PRIVATE KEY-----") {
		return true
	}
	return len(urlSecrets(text)) > 0
}

// urlSecrets returns the credentials in the URLs within text: the password of each, and for http and https the user
// too, where a token often stands. A name without a password in another scheme (ssh://git@host) is none.
func urlSecrets(text string) []string {
	var found []string
	for {
		before, after, ok := strings.Cut(text, "://")
		if !ok {
			return found
		}
		text = after
		authority := after
		if i := strings.IndexAny(authority, "/?# \t\r\n\"'<>"); i >= 0 {
			authority = authority[:i]
		}
		at := strings.LastIndexByte(authority, '@')
		if at <= 0 {
			continue
		}
		user, password, _ := strings.Cut(authority[:at], ":")
		before = strings.ToLower(before)
		if user != "" && (strings.HasSuffix(before, "http") || strings.HasSuffix(before, "https")) {
			found = append(found, user)
		}
		if password != "" {
			found = append(found, password)
		}
	}
}

// inheritedSecrets collects the credentials of an environment: values of variables with such a name, passwords in
// URLs, and the same among the git settings the environment carries.
func inheritedSecrets(env []string) []string {
	var secrets []string
	add := func(values ...string) {
		for _, v := range values {
			if len(v) >= minSecret {
				secrets = append(secrets, v)
			}
		}
	}
	for _, entry := range env {
		name, value, ok := cutEntry(entry)
		if !ok {
			continue
		}
		add(urlSecrets(value)...)
		if isSecretName(name) {
			add(value)
		}
	}
	pairs, err := Effective(LookupIn(env))
	if err != nil {
		return secrets // Git gets nothing from it either.
	}
	for _, p := range pairs {
		add(urlSecrets(p.Key)...)
		add(urlSecrets(p.Value)...)
		if isSecretPair(p) {
			add(p.Value)
			// The last word of a header is the credential proper: "Authorization: Basic xyz".
			if fields := strings.Fields(p.Value); len(fields) > 1 {
				add(fields[len(fields)-1])
			}
		}
	}
	return secrets
}

// isSecretPair reports whether the name of a setting with a canonical key means a credential or the way to one.
func isSecretPair(p Pair) bool {
	section, _, name, _ := splitKey(p.Key)
	return section == "credential" || isSecretName(name)
}

// containsAny reports whether text contains one of the secrets.
func containsAny(text string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(text, s) })
}
