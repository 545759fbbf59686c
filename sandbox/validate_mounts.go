package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
)

// HelperPath is the directory inside that is kept for the guest helper.
const HelperPath = "/run/berth"

// maxTmpfs bounds one scratch mount, in bytes.
const maxTmpfs = 1 << 40

// workspace checks the directory of the user that appears inside.
func (v *validator) workspace() {
	w := v.spec.Workspace
	if v.spec.Scope == ScopeShared && v.spec.Config.Access == AccessNone && w == "" {
		return
	}
	if _, err := resolveWorkspace(w, v.host); err != nil {
		v.problem(err)
		return
	}
	if v.spec.Config.Access == AccessNone {
		return
	}
	if why := v.protectedBy(w); why != "" {
		v.dangerous("workspace", fmt.Sprintf("workspace %q", w), why, "use a directory made for the work")
	}
}

// workspaceMount is where the workspace appears inside.
func (v *validator) workspaceMount() string {
	if v.spec.Config.Access == AccessReadOnly {
		return ReadOnlyWorkspacePath
	}
	return WorkspacePath
}

// binds checks the sources and where they appear.
func (v *validator) binds() {
	for i, b := range v.spec.Config.Binds {
		what := fmt.Sprintf("bind %q to %q", b.Source, b.Target)
		if v.malformed("binds", what, "source", b.Source) || v.malformed("binds", what, "target", b.Target) {
			continue
		}
		v.source(i, b, what)
		why := coveredBy(b.Target)
		if filepath.Clean(b.Target) == filepath.Dir(HelperPath) {
			why = "the guest helper lies in it"
		}
		if why != "" {
			v.dangerous("binds", what, "target: "+why, "choose another target")
		}
	}
}

// source checks one bind source.
func (v *validator) source(i int, b Bind, what string) {
	real, err := v.host.EvalSymlinks(b.Source)
	if err != nil {
		if why := v.protectedBy(b.Source); why != "" {
			v.dangerous("binds", what, "source: "+why, "bind a directory made for the purpose")
		}
		v.findings = append(v.findings, Finding{
			Field: "binds", What: what, Rule: "the source must exist: " + reason(err),
			Remedy: fmt.Sprintf("create it, or remove bind %d", i+1), Err: err,
		})
		return
	}
	if why := v.protectedBy(b.Source); why != "" {
		v.dangerous("binds", what, "source: "+why, "bind a directory made for the purpose")
		return
	}
	if b.ReadOnly || v.spec.Config.Access == AccessReadWrite || v.spec.Workspace == "" {
		return
	}
	if ws := v.host.resolve(v.spec.Workspace); pathWithin(real, ws) || pathWithin(ws, real) {
		v.dangerous("binds", what, fmt.Sprintf("it makes the workspace writable, whose access is %q", v.spec.Config.Access),
			"make the bind read-only")
	}
}

// tmpfs checks scratch mounts.
func (v *validator) tmpfs() {
	for _, t := range v.spec.Config.Tmpfs {
		what := fmt.Sprintf("tmpfs %q", t.Path)
		if v.malformed("tmpfs", what, "path", t.Path) {
			continue
		}
		if why := coveredBy(t.Path); why != "" {
			v.dangerous("tmpfs", what, why, "choose another path")
		}
		if t.SizeBytes < 0 || t.SizeBytes > maxTmpfs {
			v.wrong("tmpfs", fmt.Sprintf("%s of %d bytes", what, t.SizeBytes), "a size is between 0 (64 MiB) and 1 TiB", "give a size in bytes")
		}
	}
}

// targets finds two mounts at one place, and mounts over the workspace.
func (v *validator) targets() {
	seen := map[string]string{filepath.Clean(v.workspaceMount()): "the workspace"}
	look := func(field, target, what string) {
		if !filepath.IsAbs(target) {
			return
		}
		clean := filepath.Clean(target)
		if other, taken := seen[clean]; taken {
			v.wrong(field, what, fmt.Sprintf("%s is already the place of %s", clean, other), "choose another path inside")
			return
		}
		seen[clean] = what
	}
	for _, t := range v.spec.Config.Tmpfs {
		look("tmpfs", t.Path, fmt.Sprintf("tmpfs %q", t.Path))
	}
	for _, b := range v.spec.Config.Binds {
		look("binds", b.Target, fmt.Sprintf("bind %q to %q", b.Source, b.Target))
	}
}

// malformed finds a path that can be nothing.
func (v *validator) malformed(field, what, part, path string) bool {
	switch {
	case path == "":
		v.wrong(field, what, "the "+part+" is empty", "write an absolute path")
	case strings.IndexByte(path, 0) >= 0:
		v.wrong(field, what, "the "+part+" has a NUL byte", "write an absolute path")
	case !filepath.IsAbs(path):
		v.wrong(field, what, "the "+part+" must be an absolute path; \"~\" is not expanded", "write an absolute path")
	case len(path) > 4096:
		v.wrong(field, fmt.Sprintf("a path of %d bytes", len(path)), "at most 4096 are possible", "write a shorter path")
	default:
		return false
	}
	return true
}
