package skills

import "github.com/workberth/workberth/fsbridge"

// Kind says whose a skill is. It decides precedence.
type Kind string

// The kinds, weakest first.
const (
	// KindBundled skills are shipped with the product.
	KindBundled Kind = "bundled"
	// KindInstalled skills were installed by the user or a plugin on the Gateway.
	KindInstalled Kind = "installed"
	// KindWorkspace skills belong to the workspace and lie on its machine.
	KindWorkspace Kind = "workspace"
)

// rank orders kinds; a higher one wins. An unknown kind is weakest.
func (k Kind) rank() int {
	switch k {
	case KindWorkspace:
		return 3
	case KindInstalled:
		return 2
	case KindBundled:
		return 1
	}
	return 0
}

// Skill is one SKILL.md that was found, readable or not.
type Skill struct {
	// Name is the slug the skill is known by: 1 to 64 lower-case letters, digits and single
	// hyphens. It is empty where the skill is rejected for its name, or could not be read.
	Name string `json:"name"`
	// Title is the name as the file spells it, where that is no slug. It and the texts below are
	// without characters that are not seen.
	Title         string   `json:"title,omitempty"`
	Description   string   `json:"description,omitempty"`
	License       string   `json:"license,omitempty"`
	Compatibility string   `json:"compatibility,omitempty"`
	AllowedTools  []string `json:"allowedTools,omitempty"`
	// Metadata is the metadata mapping: strings, numbers, booleans, nil, lists and mappings.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Other names the fields that the format does not know; they are for other programs.
	Other    []string     `json:"other,omitempty"`
	Requires Requirements `json:"requires,omitzero"`

	Kind Kind `json:"kind"`
	// Root is the skill root as it was given to Discover, Dir the skill's folder and File its
	// SKILL.md, as paths of the bridge, below Root.
	Root string `json:"root"`
	Dir  string `json:"dir"`
	File string `json:"file"`
	// RealFile is the true location of the bytes that were read; empty where the bridge cannot
	// tell, and for skills of a workspace that no link below the root leads to.
	RealFile string `json:"realFile,omitempty"`
	// Digest is the SHA-256 of SKILL.md, Body the line on which the text after the frontmatter
	// begins.
	Digest fsbridge.Digest `json:"digest,omitempty"`
	Size   int64           `json:"size"`
	Body   int             `json:"body,omitempty"`
	// Resources are the other files of the folder, by path. Those of a skill folder inside this
	// one are not among them.
	Resources []Resource `json:"resources,omitempty"`
	// Faults are what is wrong with it, by line. One of severity SeverityError rejects it.
	Faults []Fault `json:"faults,omitempty"`
}

// Rejected reports whether a fault keeps the skill from being used.
func (s *Skill) Rejected() bool {
	for _, f := range s.Faults {
		if f.Severity == SeverityError {
			return true
		}
	}
	return false
}

// Resource is a file of a skill.
type Resource struct {
	// Path is relative to the skill's folder.
	Path string `json:"path"`
	Size int64  `json:"size"`
	// Executable: its owner may execute it.
	Executable bool `json:"executable,omitempty"`
	// Digest is the SHA-256, empty where Options.NoHashes was set, the bridge
	// cannot hash, or a limit was reached.
	Digest fsbridge.Digest `json:"digest,omitempty"`
}

// Severity says whether a fault rejects a skill.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Fault is one thing that is wrong, where, by which rule, and what to do about it. Text and Fix are one
// line of printing characters each, whatever the file has.
type Fault struct {
	Path string `json:"path"`
	// Line is 1-based; zero where the fault has no line.
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	Rule     Rule     `json:"rule"`
	Text     string   `json:"text"`
	Fix      string   `json:"fix,omitempty"`
}

// Rule names what a fault goes against.
type Rule string

// The rules.
const (
	RuleFileName     Rule = "file-name"     // the file is called SKILL.md
	RuleRegularFile  Rule = "regular-file"  // it is a regular file, or a link to one
	RuleLink         Rule = "link"          // links lead to something inside the permitted directories
	RuleReadable     Rule = "readable"      // it can be read
	RuleSize         Rule = "size"          // it is within the limits
	RuleEncoding     Rule = "encoding"      // it is UTF-8 without NUL
	RuleFrontmatter  Rule = "frontmatter"   // it begins with a block between two lines "---"
	RuleYAML         Rule = "yaml"          // the block is a YAML mapping
	RuleQuoting      Rule = "quoting"       // a text that YAML reads differently is quoted
	RuleDuplicate    Rule = "duplicate-key" // a field is given once
	RuleName         Rule = "name"          // 1 to 64 of a-z, 0-9 and single hyphens
	RuleDirName      Rule = "dir-name"      // the folder is called like the skill
	RuleDescription  Rule = "description"   // 1 to 1024 characters
	RuleHidden       Rule = "hidden"        // a text has no characters that are not seen
	RuleField        Rule = "field"         // a field has the type that the format gives it
	RuleRequirements Rule = "requirements"  // requirements can be understood
	RuleLimit        Rule = "limit"         // depth, entries and number of skills are within the limits
	RuleLoop         Rule = "loop"          // a link does not lead back to what was searched already
	RuleEmpty        Rule = "empty"         // a folder of a skill root has a SKILL.md
)
