package ssh

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/workberth/workberth/sandbox"
)

// Name is the word in --backend.
const Name = "ssh"

// The only values of these settings that can be kept without walls.
const (
	networkHost = "host"
	unconfined  = "unconfined"
)

// HomePrefix begins the path of a workspace that counts from the account's home directory.
const HomePrefix = "/~"

// DefaultConfig is what the backend can keep: the workspace read-write and the host as it
// is. That this is no confinement is permitted by having named the backend.
func DefaultConfig() sandbox.Config {
	return sandbox.Config{
		Access: sandbox.AccessReadWrite, Network: networkHost, SeccompProfile: unconfined,
		AllowDangerous: []string{"network", "seccompProfile"},
	}
}

// Workspace is the path of a workspace as Spec has it: absolute on the host, or with
// HomePrefix for one that is written "~", "~/..." or without a leading slash. An empty one
// stays empty.
func Workspace(p string) string {
	switch {
	case p == "": // nobody has decided
		return ""
	case p == "~" || strings.HasPrefix(p, "~/"):
		return path.Clean("/" + p)
	case path.IsAbs(p):
		return path.Clean(p)
	}
	return path.Join(HomePrefix, p)
}

// Written is a workspace as people write it: with "~" for HomePrefix.
func Written(workspace string) string {
	if rest, ok := strings.CutPrefix(workspace, HomePrefix); ok && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return workspace
}

// Facts are what validation asks about the host. Nothing of this machine counts: paths are
// taken as they are written, and what is not there is found out by the start.
func Facts() sandbox.HostFacts {
	return sandbox.HostFacts{
		Homes:        []string{HomePrefix},
		Lstat:        func(p string) (fs.FileInfo, error) { return remoteDir(path.Base(p)), nil },
		EvalSymlinks: func(p string) (string, error) { return filepath.Clean(p), nil },
		ReadFile: func(p string) ([]byte, error) {
			return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		},
	}
}

// remoteDir is what is said of a path before anybody has looked: that it may be a
// directory.
type remoteDir string

func (d remoteDir) Name() string     { return string(d) }
func (remoteDir) Size() int64        { return 0 }
func (remoteDir) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (remoteDir) ModTime() time.Time { return time.Time{} }
func (remoteDir) IsDir() bool        { return true }
func (remoteDir) Sys() any           { return nil }

// refuse says what cannot be kept, before anything is created.
func refuse(spec sandbox.Spec) error {
	c := spec.Config
	no := func(field, what, rule string) error {
		return &sandbox.Problem{
			Field: field, What: what, Rule: rule + ", and ssh confines nothing",
			Remedy: "leave it out for ssh, or use a container on that host", Err: sandbox.ErrRefused,
		}
	}
	l := c.Limits
	switch {
	case c.SSH == "":
		return &sandbox.Problem{
			Field: "ssh", What: "no host", Rule: "the ssh backend needs one",
			Remedy: "name it with --ssh USER@HOST[:PORT], or a Host of the SSH configuration", Err: sandbox.ErrRefused,
		}
	case strings.ContainsAny(spec.Workspace, "\n\r") || strings.IndexByte(spec.Workspace, 0) >= 0:
		return &sandbox.Problem{
			Field: "workspace", What: fmt.Sprintf("workspace %q", spec.Workspace), Rule: "a line break in the path cannot be told to the host",
			Remedy: "use a directory without one", Err: sandbox.ErrRefused,
		}
	case c.Access != sandbox.AccessReadWrite:
		return no("access", fmt.Sprintf("access %q", c.Access), "only walls can hide or protect the workspace")
	case c.Network != networkHost:
		return no("network", fmt.Sprintf("network %q", c.Network), "commands have the host's network")
	case c.SeccompProfile != unconfined:
		return no("seccompProfile", fmt.Sprintf("profile %q", c.SeccompProfile), "there is no system call filter")
	case c.ReadOnlyRoot:
		return no("readOnlyRoot", "a read-only root", "commands see the host's files")
	case len(c.Tmpfs) > 0:
		return no("tmpfs", fmt.Sprintf("a tmpfs at %q", c.Tmpfs[0].Path), "commands see the host's files")
	case len(c.Binds) > 0:
		return no("binds", fmt.Sprintf("a bind to %q", c.Binds[0].Target), "the host has no files of this machine")
	case c.User != "":
		return no("user", fmt.Sprintf("user %q", c.User), "commands run as the account that is logged in to")
	case l.Pids > 0:
		return no("limits", fmt.Sprintf("pids %d", l.Pids), "nothing counts the processes")
	case l.MemoryBytes > 0:
		return no("limits", fmt.Sprintf("memory %d", l.MemoryBytes), "nothing counts the memory")
	case l.CPUs > 0:
		return no("limits", fmt.Sprintf("cpus %v", l.CPUs), "nothing counts the processor time")
	case c.Engine != "", c.Image != "", c.Privileged, c.PidMode != "", len(c.CapAdd) > 0, c.GPUs != "":
		return no("image", "a setting of containers", "there is none")
	}
	return nil
}
