package sandbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/workberth/workberth/internal/guest/proc"
)

// engineAddress is where a container engine may be.
var engineAddress = regexp.MustCompile(`^(unix:///|tcp://[^/]|http://[^/]|https://[^/]|ssh://[^/-])[^\x00-\x20\x7f]*$`)

// networkName is what a network of an engine may be called.
var networkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// maxText bounds SetupCommand and the value of an environment variable: the
// kernel takes no longer argument.
const maxText = 128<<10 - 1

func (v *validator) scope() {
	if _, err := v.spec.key(); err != nil {
		v.problem(err)
	}
	switch v.spec.Config.Access {
	case AccessNone, AccessReadOnly, AccessReadWrite:
	default:
		v.wrong("access", fmt.Sprintf("access %q", v.spec.Config.Access), "an access is none, ro or rw", "choose one of the three")
	}
}

// namespaces checks what would share a namespace or give rights outside.
func (v *validator) namespaces() {
	c := v.spec.Config
	switch network := strings.ToLower(strings.TrimSpace(c.Network)); {
	case network == "host" || strings.HasPrefix(network, "host:"):
		v.dangerous("network", fmt.Sprintf("network %q", c.Network), "the sandbox would have this machine's network, local services included", `use network "none"`)
	case strings.Contains(network, ":") || strings.Contains(network, "/"):
		v.dangerous("network", fmt.Sprintf("network %q", c.Network), "the sandbox would join a network namespace that is not its own", `use network "none"`)
	case !networkName.MatchString(c.Network):
		v.wrong("network", fmt.Sprintf("network %q", c.Network), "a network is none or the name of a network", `use network "none"`)
	}
	switch mode := strings.ToLower(strings.TrimSpace(c.PidMode)); mode {
	case "", "private":
	default:
		v.dangerous("pidMode", fmt.Sprintf("pidMode %q", c.PidMode), "the sandbox would see and signal processes that are not its own", "leave it out")
	}
	if c.Privileged {
		v.dangerous("privileged", "privileged", "a privileged container has all rights on this machine", "leave it out")
	}
	for _, name := range c.CapAdd {
		v.dangerous("capAdd", fmt.Sprintf("capability %q", name), "commands run without any capability", "leave it out")
	}
}

// seccomp checks the system call filter.
func (v *validator) seccomp() {
	profile := v.spec.Config.SeccompProfile
	what := fmt.Sprintf("profile %q", profile)
	const filterless = "commands run under a system call filter"
	word := strings.ToLower(strings.TrimSpace(profile))
	word = strings.TrimLeft(strings.TrimPrefix(word, "seccomp"), "=: ")
	switch {
	case profile == "default":
		return
	case word == "unconfined":
		v.dangerous("seccompProfile", what, filterless, `use "default"`)
		return
	case !strings.HasPrefix(profile, "/"):
		v.wrong("seccompProfile", what, `a profile is "default", an absolute path or "unconfined"`, `use "default"`)
		return
	}
	data, err := v.host.ReadFile(profile)
	if err != nil {
		v.findings = append(v.findings, Finding{
			Field: "seccompProfile", What: what, Rule: "it must be readable: " + reason(err),
			Remedy: `name a file in the format of Docker profiles, or "default"`, Err: err,
		})
		return
	}
	var p struct {
		DefaultAction string `json:"defaultAction"`
		Syscalls      []struct {
			Action string `json:"action"`
		} `json:"syscalls"`
	}
	if err := json.Unmarshal(data, &p); err != nil || p.DefaultAction == "" {
		v.wrong("seccompProfile", what, "it is not in the format of Docker profiles", `mend it, or use "default"`)
		return
	}
	lets := func(action string) bool { return action == "SCMP_ACT_ALLOW" || action == "SCMP_ACT_LOG" }
	stops := false
	for _, s := range p.Syscalls {
		stops = stops || !lets(s.Action)
	}
	if lets(p.DefaultAction) && !stops {
		v.dangerous("seccompProfile", what, filterless+", and this one lets everything pass", `use "default"`)
	}
}

// limits checks numbers.
func (v *validator) limits() {
	l := v.spec.Config.Limits
	whole := func(name string, value, least, most int64) {
		if value != 0 && (value < least || value > most) {
			v.wrong("limits", fmt.Sprintf("%s %d", name, value), fmt.Sprintf("it is 0 (no limit) or between %d and %d", least, most), "give a sensible number")
		}
	}
	whole("pids", l.Pids, 8, 4<<20)
	whole("memoryBytes", l.MemoryBytes, 16<<20, 1<<50)
	whole("openFiles", l.OpenFiles, 16, 1<<30)
	whole("fileSizeBytes", l.FileSizeBytes, 1, math.MaxInt64)
	if cpus := l.CPUs; cpus != 0 && !(cpus >= 0.01 && cpus <= 4096) {
		v.wrong("limits", fmt.Sprintf("cpus %v", cpus), "it is 0 (no limit) or between 0.01 and 4096", "give a sensible number")
	}
	for name, value := range map[string]float64{"idleHours": v.spec.Config.Prune.IdleHours, "maxAgeDays": v.spec.Config.Prune.MaxAgeDays} {
		if !(value >= 0 && value <= 1e6) {
			v.wrong("prune", fmt.Sprintf("%s %v", name, value), "it is 0 (never) or a positive number", "give a sensible number")
		}
	}
}

// environment checks names and values. Values are never shown.
func (v *validator) environment() {
	for _, name := range slices.Sorted(maps.Keys(v.spec.Config.Env)) {
		if err := ValidEnv(name, v.spec.Config.Env[name]); err != nil {
			v.problem(err)
		}
	}
}

// ValidEnv checks one variable of an environment. The error is a *[Problem] that
// matches ErrRefused, names the variable and never shows its value.
func ValidEnv(name, value string) error {
	what := fmt.Sprintf("variable %q", name)
	switch {
	case name == "":
		return refused("env", what, "a name is not empty", "give it a name")
	case strings.ContainsAny(name, "=\x00") || strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0:
		return refused("env", what, `a name has no "=", no white space and no control characters`, "give it another name")
	case name == proc.MarkerVar:
		return refused("env", what, "it is kept for the process marker", "give it another name")
	case strings.IndexByte(value, 0) >= 0:
		return refused("env", what, "its value has a NUL byte", "pass such data in a file")
	case len(name)+len(value) > maxText-2:
		return refused("env", what, fmt.Sprintf("its value has %d bytes, the kernel takes no more than 128 KiB", len(value)), "pass such data in a file")
	}
	return nil
}

// texts checks the remaining fields for form.
func (v *validator) texts() {
	c := v.spec.Config
	if strings.IndexByte(c.Workdir, 0) >= 0 || strings.HasPrefix(c.Workdir, "~") {
		v.wrong("workdir", fmt.Sprintf("directory %q", c.Workdir), `it has no NUL byte and "~" is not expanded`, "write an absolute path, or one relative to the workspace")
	}
	if strings.IndexByte(c.SetupCommand, 0) >= 0 || len(c.SetupCommand) > maxText {
		v.wrong("setupCommand", fmt.Sprintf("a command of %d bytes", len(c.SetupCommand)), "it has no NUL byte and at most 128 KiB", "put it into a file of the workspace")
	}
	if !validUser(c.User) {
		v.wrong("user", fmt.Sprintf("user %q", c.User), `a user is "UID:GID", two numbers`, "leave it out for the owner of the workspace")
	}
	if c.Engine != "" && !engineAddress.MatchString(c.Engine) {
		v.wrong("engine", fmt.Sprintf("engine %q", c.Engine), "an address is unix://, an absolute path, tcp:// or ssh:// and a host", "write it as unix:///var/run/docker.sock")
	}
	v.ssh(c)
	if !validGPUs(c.GPUs) {
		v.wrong("gpus", fmt.Sprintf("gpus %q", c.GPUs), "it is all, or a number from 1 to 64", "write all, or a number")
	}
	if strings.HasPrefix(c.Image, "-") || strings.IndexFunc(c.Image, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		v.wrong("image", fmt.Sprintf("image %q", c.Image), "the name of an image has no white space and no leading dash", "write the name as the engine lists it")
	}
}

// ssh checks the form of what leads to another machine.
func (v *validator) ssh(c Config) {
	if strings.HasPrefix(c.SSH, "-") || strings.IndexFunc(c.SSH, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		v.wrong("ssh", fmt.Sprintf("host %q", c.SSH), "a host has no white space and no leading dash", "write it as USER@HOST:PORT, or a Host of the SSH configuration")
	}
	for _, f := range []struct{ field, what, path string }{{"sshConfig", "file", c.SSHConfig}, {"seed", "directory", c.Seed}} {
		if f.path != "" && f.path != "none" && !filepath.IsAbs(f.path) || strings.IndexByte(f.path, 0) >= 0 {
			v.wrong(f.field, fmt.Sprintf("%s %q", f.what, f.path), "it must be an absolute path", "write the absolute path")
		}
	}
}

// validGPUs reports whether s is "", "all" or a number of graphics processors.
func validGPUs(s string) bool {
	if s == "" || s == "all" {
		return true
	}
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 64 && strconv.Itoa(n) == s
}

// validUser reports whether s is "" or "UID:GID". The largest number is no user.
func validUser(s string) bool {
	if s == "" {
		return true
	}
	uid, gid, ok := strings.Cut(s, ":")
	for _, n := range []string{uid, gid} {
		id, err := strconv.ParseUint(n, 10, 32)
		ok = ok && err == nil && id != math.MaxUint32 && strconv.FormatUint(id, 10) == n
	}
	return ok
}
