package remoteworkspace

import (
	"context"
	"io"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/skills"
)

// Access is what a trusted host registers for one bound workspace
// (AgentWorkspaceAccess). It is ready for use: its target has been chosen, set up
// and logged in to. Keeps RWS-04.
type Access struct {
	// Bridge makes a guarded bridge to the workspace, whose relative paths start
	// at its root. It is called once for each document call and must be safe for
	// concurrent use. Its guard says whether the caller's authority and this very
	// registration still hold. A bridge that implements io.Closer is closed after
	// the call. Needed.
	Bridge fsbridge.Factory
	// LoadSkills (loadSkills) finds the skills that the workspace owns, on its machine, and
	// what that machine has for their requirements. It reports facts and decides nothing. Nil
	// leaves skills to local discovery. Keeps SKL-02, SKL-04, SKL-07.
	LoadSkills func(ctx context.Context) (skills.Discovery, error)
	// PrepareTurnAttachments stages the files of an input in the workspace
	// (prepareTurnAttachments), as the Prepare of an attachments.WorkspacePreparer
	// does. Nil: files keep their ordinary handling, and none is transferred. Keeps
	// ATT-15, ATT-32.
	PrepareTurnAttachments attachments.Provider
}

// LocalFunc opens a bridge to a workspace directory of this machine. It is asked
// only for directories that were never declared. A bridge that implements
// io.Closer is closed after the call. Keeps RWS-08.
type LocalFunc func(ctx context.Context, dir string, assertCurrent fsbridge.AssertFunc) (fsbridge.Bridge, error)

// closeBridge ends a bridge that was opened for one call.
func closeBridge(b fsbridge.Bridge) {
	if c, ok := b.(io.Closer); ok {
		_ = c.Close() // everything was read or answered already
	}
}
