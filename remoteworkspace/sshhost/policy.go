package sshhost

import (
	"fmt"
	"regexp"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// Policy says who may come into which workspace. It is not changed once a Server has it.
type Policy struct {
	// Workspaces by name. The name is the user name of SSH.
	Workspaces map[string]Workspace
}

// Workspace is what the server knows of one workspace.
type Workspace struct {
	// Keys may log in.
	Keys []AuthorizedKey
	// Authorities sign user certificates that may log in. A certificate names the
	// workspace among its principals.
	Authorities []ssh.PublicKey
	// Forward permits connections to the sandbox's own loopback (ssh -L).
	Forward bool
	// KeepBackground leaves what a command started in the background running when the
	// command ends by itself, until the sandbox ends.
	KeepBackground bool
	// Revision changes with what the sandbox is made of. A reload that changes it ends
	// the sandbox.
	Revision string
}

// MaxName bounds the name of a workspace, in bytes.
const MaxName = 64

// nameForm is what a workspace may be called: it is a user name, a file name and a word
// in logs.
var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// ValidName refuses what cannot be the name of a workspace.
func ValidName(name string) error {
	if len(name) <= MaxName && nameForm.MatchString(name) {
		return nil
	}
	if len(name) > MaxName {
		name = name[:MaxName] + "..."
	}
	return &sandbox.Problem{
		What:   fmt.Sprintf("workspace name %q", name),
		Rule:   fmt.Sprintf("a name has 1 to %d lower-case letters, digits, dots, dashes and underscores, and begins and ends with a letter or digit", MaxName),
		Remedy: "choose another name", Field: "name", Err: sandbox.ErrRefused,
	}
}
