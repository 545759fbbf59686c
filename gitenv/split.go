package gitenv

// Withheld names an entry that must not be copied. It never holds a value.
type Withheld struct {
	// Index is the position of the entry in what was proposed, from 0.
	Index int
	// Name is the name of the variable; for a setting it is the key with "*" in place of a subsection, which may
	// itself hold a credential; empty for an entry that is not a variable.
	Name string
	// Reason says which rule withholds it.
	Reason Reason
}

// SplitEnv divides variables that are proposed for something longer-lived or wider than one child's environment,
// such as overrides of a tool request or the durable configuration of a native thread, into those that may be copied
// there and those that stay where they are. Keeps GIT-10 and GIT-11.
//
// Withheld are the variables git takes configuration from, always, since a composed value contains the inherited one;
// variables whose name means a credential; values with a credential in them; and values that contain a credential
// found in inherited, the environment of the child, under whatever name. Inherited credentials shorter than 6
// bytes are not searched for. The check errs on the side of withholding: a withheld variable costs convenience, a
// copied credential is a leak. It cannot recognise a credential under an innocent name that is not inherited.
//
// The order is kept; nothing is shared with the arguments but the strings.
func SplitEnv(inherited, proposed []string) (allowed []string, withheld []Withheld) {
	secrets := inheritedSecrets(inherited)
	for i, entry := range proposed {
		name, value, ok := cutEntry(entry)
		var reason Reason
		switch {
		case !ok:
			name, reason = "", ReasonNotVariable
		case isConfigCarrier(name):
			reason = ReasonGitCarrier
		case isSecretName(name):
			reason = ReasonName
		case hasSecretForm(value):
			reason = ReasonForm
		case containsAny(value, secrets):
			reason = ReasonInherited
		default:
			allowed = append(allowed, entry)
			continue
		}
		withheld = append(withheld, Withheld{Index: i, Name: name, Reason: reason})
	}
	return allowed, withheld
}

// SplitConfig does for git settings what [SplitEnv] does for variables: it returns the settings that may enter durable
// configuration, and what is withheld. All of credential.* is withheld, and settings such as http.extraHeader,
// http.cookieFile, http.sslKey, core.askPass and a URL with a password in key or value.
//
// Settings with a key that git would refuse are an error, a *[PairError], and nothing is returned.
func SplitConfig(inherited []string, proposed []Pair) (allowed []Pair, withheld []Withheld, err error) {
	secrets := inheritedSecrets(inherited)
	for i, p := range proposed {
		canonical := p
		if err := p.check(); err != nil {
			return nil, nil, &PairError{Index: i, Err: err}
		}
		canonical.Key, _ = CanonicalKey(p.Key)
		var reason Reason
		switch {
		case isSecretPair(canonical):
			reason = ReasonName
		case hasSecretForm(p.Key) || hasSecretForm(p.Value):
			reason = ReasonForm
		case containsAny(p.Key, secrets) || containsAny(p.Value, secrets):
			reason = ReasonInherited
		default:
			allowed = append(allowed, p)
			continue
		}
		withheld = append(withheld, Withheld{Index: i, Name: maskedKey(canonical.Key), Reason: reason})
	}
	return allowed, withheld, nil
}

// maskedKey replaces the subsection of a canonical key.
func maskedKey(key string) string {
	section, _, name, named := splitKey(key)
	if !named {
		return section + "." + name
	}
	return section + ".*." + name
}
