package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Limits of names, in bytes.
const (
	maxKey = 1024
	idHex  = 16
)

// identityVersion changes when the same spec must get another identity: when
// what is hashed changes.
const identityVersion = "workberth-1"

// backendName is what a backend may be called.
var backendName = regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`)

// idForm is what an ID looks like.
var idForm = regexp.MustCompile(`^[a-z][a-z0-9]{0,30}-[0-9a-f]{16}$`)

// Valid reports whether id has the form of an ID, so that it can be a file name.
func (id ID) Valid() bool { return idForm.MatchString(string(id)) }

// Backend is the name of the backend in id.
func (id ID) Backend() string {
	name, _, _ := strings.Cut(string(id), "-")
	return name
}

// Identity derives the name of the sandbox that spec asks for and the hash of its
// configuration.
//
// The name depends on the backend, the scope, the key of that scope (session or
// agent), the workspace without links, and the effective configuration, as
// [ApplyDefaults] completes it. In scope shared the workspace counts only when
// it appears inside: two workspaces never share a sandbox that shows one.
//
// The order of tmpfs, binds and capabilities carries no meaning; bind sources and
// the profile count without links, the profile with its content. Prune, Seed and
// AllowDangerous do not change what runs and do not count.
//
// A missing key, a relative or missing workspace and a missing source are a
// *[Problem] that matches ErrRefused.
func Identity(backend string, spec Spec, host HostFacts) (id ID, configHash string, err error) {
	if !backendName.MatchString(backend) {
		return "", "", refused("backend", fmt.Sprintf("backend name %q", backend), "a name is a lower-case word", "")
	}
	key, err := spec.key()
	if err != nil {
		return "", "", err
	}
	config := ApplyDefaults(spec.Config)
	workspace := ""
	if spec.Scope != ScopeShared || config.Access != AccessNone {
		if workspace, err = resolveWorkspace(spec.Workspace, host); err != nil {
			return "", "", err
		}
	}
	configHash, err = hashConfig(config, host)
	if err != nil {
		return "", "", err
	}
	h := sha256.New()
	for _, part := range []string{identityVersion, backend, string(spec.Scope), key, workspace, configHash} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return ID(backend + "-" + hex.EncodeToString(h.Sum(nil))[:idHex]), configHash, nil
}

// key returns the key of the spec's scope.
func (s Spec) key() (string, error) {
	var field, key string
	switch s.Scope {
	case ScopeShared:
		return "", nil
	case ScopeSession:
		field, key = "session", s.Session
	case ScopeAgent:
		field, key = "agent", s.Agent
	default:
		return "", refused("scope", fmt.Sprintf("scope %q", s.Scope), "a scope is session, agent or shared", "choose one of the three")
	}
	switch {
	case key == "":
		return "", refused(field, "no "+field+" key", fmt.Sprintf("scope %q needs one", s.Scope), "give a key, or choose scope shared")
	case len(key) > maxKey:
		return "", refused(field, fmt.Sprintf("a key of %d bytes", len(key)), fmt.Sprintf("at most %d are possible", maxKey), "give a shorter key")
	case strings.IndexFunc(key, unicode.IsControl) >= 0:
		return "", refused(field, fmt.Sprintf("key %q", key), "a key has no control characters", "give another key")
	}
	return key, nil
}

// resolveWorkspace returns the workspace without links.
func resolveWorkspace(path string, host HostFacts) (string, error) {
	switch {
	case path == "":
		return "", refused("workspace", "no workspace", "a sandbox needs one", "name an existing directory by its absolute path")
	case strings.IndexByte(path, 0) >= 0:
		return "", refused("workspace", fmt.Sprintf("workspace %q", path), "a path has no NUL byte", "name an existing directory")
	case !filepath.IsAbs(path):
		return "", refused("workspace", fmt.Sprintf("workspace %q", path), "it must be an absolute path; \"~\" is not expanded", "name an existing directory by its absolute path")
	}
	real, err := host.EvalSymlinks(path)
	if err != nil {
		return "", &Problem{Field: "workspace", What: fmt.Sprintf("workspace %q", path), Rule: "it must exist: " + reason(err), Remedy: "create the directory, or name another one", Err: wrapRefused(err)}
	}
	info, err := host.Lstat(real)
	if err != nil {
		return "", &Problem{Field: "workspace", What: fmt.Sprintf("workspace %q", path), Rule: "it must exist: " + reason(err), Remedy: "create the directory, or name another one", Err: wrapRefused(err)}
	}
	if !info.IsDir() {
		return "", refused("workspace", fmt.Sprintf("workspace %q", path), "it is not a directory", "name an existing directory")
	}
	return real, nil
}

// hashConfig hashes what of an effective configuration changes what runs.
func hashConfig(c Config, host HostFacts) (string, error) {
	c.Prune = Prune{}
	c.Seed = ""
	c.AllowDangerous = nil
	for i, b := range c.Binds {
		if !filepath.IsAbs(b.Source) {
			return "", refused("binds", fmt.Sprintf("bind source %q", b.Source), "it must be an absolute path", "write the absolute path")
		}
		real, err := host.EvalSymlinks(b.Source)
		if err != nil {
			return "", &Problem{Field: "binds", What: fmt.Sprintf("bind source %q", b.Source), Rule: "it must exist: " + reason(err), Remedy: "create it, or remove the bind", Err: wrapRefused(err)}
		}
		c.Binds[i] = Bind{Source: real, Target: filepath.Clean(b.Target), ReadOnly: b.ReadOnly}
	}
	for i, t := range c.Tmpfs {
		c.Tmpfs[i].Path = filepath.Clean(t.Path)
	}
	slices.SortFunc(c.Tmpfs, func(a, b Tmpfs) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.SizeBytes, b.SizeBytes))
	})
	slices.SortFunc(c.Binds, func(a, b Bind) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Source, b.Source), cmpBool(a.ReadOnly, b.ReadOnly))
	})
	slices.Sort(c.CapAdd)
	c.CapAdd = slices.Compact(c.CapAdd)
	// Bytes that are not UTF-8 would become one and the same character in JSON.
	profile := ""
	if filepath.IsAbs(c.SeccompProfile) {
		data, err := host.ReadFile(c.SeccompProfile)
		if err != nil {
			return "", &Problem{Field: "seccompProfile", What: fmt.Sprintf("profile %q", c.SeccompProfile), Rule: "it must be readable: " + reason(err), Remedy: `name a file in the format of Docker profiles, or "default"`, Err: wrapRefused(err)}
		}
		profile = fmt.Sprintf("%x", sha256.Sum256(data))
		c.SeccompProfile = host.resolve(c.SeccompProfile)
	}
	data, err := json.Marshal(struct {
		Config  Config `json:"config"`
		Profile string `json:"profile,omitempty"`
	}{quoteConfig(c), profile})
	if err != nil {
		return "", refused("config", "a value that cannot be written down", err.Error(), "")
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// quoteConfig makes every text of c pure ASCII, reversibly, so that its JSON form
// tells any two configurations apart.
func quoteConfig(c Config) Config {
	q := func(s *string) { *s = quoteBytes(*s) }
	q(&c.Workdir)
	q(&c.Network)
	q(&c.SetupCommand)
	q(&c.SeccompProfile)
	q(&c.User)
	q(&c.Engine)
	q(&c.Image)
	q(&c.PidMode)
	q(&c.GPUs)
	q(&c.SSH)
	q(&c.SSHConfig)
	for i := range c.CapAdd {
		q(&c.CapAdd[i])
	}
	for i := range c.Tmpfs {
		q(&c.Tmpfs[i].Path)
	}
	for i := range c.Binds {
		q(&c.Binds[i].Source)
		q(&c.Binds[i].Target)
	}
	env := make(map[string]string, len(c.Env))
	for k, v := range c.Env {
		env[quoteBytes(k)] = quoteBytes(v)
	}
	c.Env = env
	return c
}

func quoteBytes(s string) string {
	const hexDigits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c < ' ' || c >= 0x7f:
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
