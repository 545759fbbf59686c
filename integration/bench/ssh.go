package bench

import (
	"context"
	"errors"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// sshBackend is the name of the backend that has measures of its own.
const sshBackend = "ssh"

// sshMeasures lists its measures: the peers are programs and a library that are no engines.
func sshMeasures() []measure {
	return []measure{
		{"files", "File operations", sshFilesHow, sshFiles},
		{"bulk", "Bulk transfer", sshBulkHow, sshBulk},
		{"tree", "A tree of small files", sshTreeHow, sshTree},
		{"attachments", "Attachments", attachmentsHow, attach},
		{"distance", "A tree over a long line", distanceHow, distance},
		{"copies", "A copy over a long line", copiesHow, copies},
		{"skills", "Skills over a long line", skillsHow, discovery},
	}
}

// at makes a sandbox of which the backend reaches the server as one of the hosts of
// SSHServer.Config. Its workspace is new when none is given.
func (b *Bench) at(ctx context.Context, host, workspace string) (*box, error) {
	return b.open(ctx, func(s *sandbox.Spec) { s.Config.SSH, s.Workspace = host, workspace })
}

// site is a workspace on the server with the two ways to its files: the bridge, and the library
// that it is compared with, on a connection of its own.
type site struct {
	*box
	files fsbridge.Bridge
	peer  *sftpPeer
}

// site makes a workspace that is reached by a host of SSHServer.Config.
func (b *Bench) site(ctx context.Context, host string) (*site, error) {
	x, err := b.at(ctx, host, "")
	if err != nil {
		return nil, err
	}
	s := &site{box: x}
	if s.files, err = x.bridge(ctx); err == nil {
		s.peer, err = b.SSH.sftp(host, x.workspace)
	}
	if err != nil {
		return nil, errors.Join(err, x.remove(ctx))
	}
	return s, nil
}

// close ends both and deletes the workspace.
func (s *site) close(ctx context.Context) error { return errors.Join(s.peer.close(), s.remove(ctx)) }
