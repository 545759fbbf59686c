package skills

import (
	"context"

	"github.com/workberth/workberth/fsbridge"
)

// Root is a directory to search for skill folders: a path of the bridge.
type Root struct {
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// Needed makes a missing root an error; otherwise it is one without skills.
	Needed bool `json:"-"`
}

// DefaultWorkspaceRoots are the skill roots of a workspace, relative to it, strongest first:
// the folder of agents that keep their whole home in the workspace, the one that agents of
// different makers share, and the one that most published skills are installed to.
func DefaultWorkspaceRoots() []string { return []string{"skills", ".agents/skills", ".claude/skills"} }

// DefaultInstalledRoots are the skill roots of a user, relative to the home directory.
func DefaultInstalledRoots() []string { return []string{".agents/skills", ".claude/skills"} }

// Limits bound a discovery. Zero values mean the defaults.
type Limits struct {
	// Skills is how many SKILL.md files one discovery reads; 5,000 by default. Further ones
	// are rejected by RuleLimit.
	Skills int
	// FileBytes is the largest SKILL.md; 1 MiB by default.
	FileBytes int64
	// Depth is how many levels of folders below a root are searched; 8 by default.
	Depth int
	// Entries is how many files and folders of one root are looked at, those behind links
	// included; 200,000 by default.
	Entries int
	// Resources is how many files one skill may have; 2,000 by default.
	Resources int
	// HashBytes is how many bytes of resources one discovery hashes; 4 GiB by default. Further
	// ones have no digest, and a notice tells.
	HashBytes int64
}

func (l Limits) orDefaults() Limits {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Skills, 5_000)
	set(&l.Depth, 8)
	set(&l.Entries, 200_000)
	set(&l.Resources, 2_000)
	if l.FileBytes <= 0 {
		l.FileBytes = 1 << 20
	}
	if l.HashBytes <= 0 {
		l.HashBytes = 4 << 30
	}
	return l
}

// Options direct Discover. The zero value is fine.
type Options struct {
	Limits Limits
	// Parallel is how many files are asked for at once; 2,000 by default, so that a link with
	// delay costs a round trip and not one for each file. For files of this machine a few do.
	Parallel int
	// NoHashes leaves resources without a digest, which spares reading them.
	NoHashes bool
	// Environ and binaries that the configuration asks about besides what the skills name.
	Ask Request
}

// Request is what a Prober is asked for.
type Request struct {
	// Binaries are names of programs to look for on PATH, Env names of variables that may be set.
	Binaries []string
	Env      []string
}

// Facts are what a machine has. A name that was not asked about is in no map.
type Facts struct {
	// Platform is the operating system as Go spells it: linux, darwin, windows, freebsd, ...
	Platform string `json:"platform,omitempty"`
	// Binaries says of each program whether it is on PATH, Env of each variable whether it is
	// set and not empty.
	Binaries map[string]bool `json:"binaries,omitempty"`
	Env      map[string]bool `json:"env,omitempty"`
}

// Prober asks the machine that has the skills what else it has: once for all skills, in one
// round trip where the machine is elsewhere. Keeps SKL-04.
type Prober interface {
	Probe(ctx context.Context, ask Request) (Facts, error)
}

// Discovery is what was found on one machine: facts, no decisions. It can be sent as JSON.
// Keeps SKL-04.
type Discovery struct {
	// Skills has every SKILL.md found, by precedence of its root and then by path.
	Skills []Skill `json:"skills"`
	// Facts are the platform, and which of the binaries and variables that the skills ask for
	// the machine has.
	Facts
	// Notices are faults of the search that belong to no skill, by path.
	Notices []Fault `json:"notices,omitempty"`
	// Roots are the roots that exist.
	Roots []Root `json:"roots,omitempty"`
}

// parallel is how many calls may be under way.
func (o Options) parallel() int {
	if o.Parallel <= 0 {
		return 2_000
	}
	return o.Parallel
}

// local makes the error of a whole root.
func rootError(path string, err error, hint string) error {
	return &fsbridge.PathError{Op: "search for skills in", Path: path, Err: err, Hint: hint}
}
