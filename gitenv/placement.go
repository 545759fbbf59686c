package gitenv

import "fmt"

// Placement says where a process runs and who starts it. The zero value is not a placement; every function that takes
// one refuses it, so that nobody is treated as local by omission. Keeps GIT-04 and GIT-12.
type Placement string

const (
	// LocalHost is a process the harness itself starts on its own machine, outside any sandbox. Only such a child
	// receives the fragment.
	LocalHost Placement = "local-host"
	// Sandboxed is a process in a sandbox, on whatever machine. The sandbox owns its environment.
	Sandboxed Placement = "sandbox"
	// Remote is a process on another machine. That machine's host owns its environment.
	Remote Placement = "remote"
	// External is a process on this machine that someone else starts; the harness at most talks to it.
	External Placement = "external"
)

// ReceivesFragment reports whether a process in this place gets the host's fragment.
func (p Placement) ReceivesFragment() bool { return p == LocalHost }

// Validate returns an error that matches [ErrPlacement] unless p is one of the four constants.
func (p Placement) Validate() error {
	switch p {
	case LocalHost, Sandboxed, Remote, External:
		return nil
	}
	return fmt.Errorf("gitenv: %w %q; use one of %q, %q, %q and %q", ErrPlacement, string(p), LocalHost, Sandboxed, Remote, External)
}
