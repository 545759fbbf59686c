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

// HomePrefix begins the path of a workspace that counts from the account's home directory.
const HomePrefix = "/~"

// DefaultConfig is what the backend can keep: the workspace read-write and the host as it
// is. That this is no confinement is permitted by having named the backend.
func DefaultConfig() sandbox.Config {
	return sandbox.Config{
		Access: sandbox.AccessReadWrite, Network: sandbox.NetworkHost, SeccompProfile: sandbox.SeccompUnconfined,
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
	}
	return sandbox.Unconfined{
		Backend: Name, Machine: "the host",
		Binds: "the host has no files of this machine", User: "commands run as the account that is logged in to",
		Instead: "use a container on that host",
	}.Refuse(c)
}
