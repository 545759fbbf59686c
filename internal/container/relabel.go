package container

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// Where SELinux separates containers, they see only files with a label of theirs. A directory gets one
// when it is mounted, with all that is in it, for good. Those of one sandbox alone get that sandbox's
// own label; a workspace and a bind may be another sandbox's too, so they get the one that all have.

// selinux reports whether the engine separates its containers so.
func (d Description) selinux() bool { return slices.Contains(d.Security, "selinux") }

// label says how the mounts of this machine are to be labelled. own are the directories that no other
// sandbox sees.
func label(mounts []Mount, own ...string) {
	for i, m := range mounts {
		if m.Source == "" {
			continue
		}
		mounts[i].Relabel, mounts[i].Private = true, slices.Contains(own, m.Source)
	}
}

// checkLabels refuses what must not get another label: programs and services of this machine would not
// find their own files any more.
func (b *Backend) checkLabels(about Description, mounts []hostmount.Mount) error {
	if !about.selinux() {
		return nil
	}
	for _, m := range mounts {
		why := b.keepsLabel(m.Source)
		if m.Source == "" || why == "" {
			continue
		}
		field := "binds"
		if _, ok := hostmount.Find([]hostmount.Mount{m}, sandbox.WorkspacePath); ok || m.Path == sandbox.ReadOnlyWorkspacePath {
			field = "workspace"
		}
		return &sandbox.Problem{
			Field: field, What: fmt.Sprintf("%q at %s", m.Source, m.Path),
			Rule:   "SELinux separates containers, so everything in it would get another label: " + why,
			Remedy: "use a directory made for the work, below it or elsewhere", Err: sandbox.ErrRefused,
		}
	}
	return nil
}

// keepsLabel tells why a path of this machine must keep its label; "" means that it need not.
func (b *Backend) keepsLabel(source string) string {
	within := func(p, root string) bool { return root == "/" || p == root || strings.HasPrefix(p, root+"/") }
	const system = "it belongs to the system"
	for _, p := range []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/lib/containers",
		"/var/lib/docker", "/var/log", "/var/run",
	} {
		if within(source, p) || within(p, source) {
			return system
		}
	}
	if slices.Contains([]string{"/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var", "/var/cache", "/var/lib", "/var/tmp"}, source) {
		return system
	}
	for _, home := range b.facts.Homes {
		if !filepath.IsAbs(home) {
			continue
		}
		if real, err := b.facts.EvalSymlinks(home); err == nil {
			home = real
		}
		if within(home, source) {
			return "it is, or holds, a whole home directory, keys included"
		}
		for _, name := range []string{".ssh", ".gnupg", ".pki", ".config", ".local"} {
			if p := filepath.Join(home, name); within(source, p) && (source == p || name != ".local" && name != ".config") {
				return "programs of the user's keep keys and settings there"
			}
		}
	}
	return ""
}
