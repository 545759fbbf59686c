package sftpfs

import (
	"fmt"
	"sync/atomic"

	"github.com/pkg/sftp"

	"github.com/workberth/workberth/fsbridge"
)

// Extensions of the protocol that make the difference.
const (
	extPosixRename = "posix-rename@openssh.com"
	extHardlink    = "hardlink@openssh.com"
	extFsync       = "fsync@openssh.com"
	extStatVFS     = "statvfs@openssh.com"
)

// Bridge reaches files over SFTP. It is safe for concurrent use. See the package for what it declares
// and protects.
type Bridge struct {
	client *sftp.Client
	opts   Options

	// given counts the requests that were given up and have not been answered since.
	given atomic.Int64
	// names are held from the last look at a name to the request that changes it, so that calls of one
	// bridge do not lose each other's updates.
	names stripes
}

var (
	_ fsbridge.Bridge           = (*Bridge)(nil)
	_ fsbridge.Declarer         = (*Bridge)(nil)
	_ fsbridge.Mounter          = (*Bridge)(nil)
	_ fsbridge.Lstater          = (*Bridge)(nil)
	_ fsbridge.RangeReader      = (*Bridge)(nil)
	_ fsbridge.StreamReader     = (*Bridge)(nil)
	_ fsbridge.StreamWriter     = (*Bridge)(nil)
	_ fsbridge.ExclusiveCreator = (*Bridge)(nil)
	_ fsbridge.Mkdirer          = (*Bridge)(nil)
	_ fsbridge.Remover          = (*Bridge)(nil)
	_ fsbridge.Renamer          = (*Bridge)(nil)
	_ fsbridge.LinkReader       = (*Bridge)(nil)
	_ fsbridge.Symlinker        = (*Bridge)(nil)
	_ fsbridge.Chmoder          = (*Bridge)(nil)
	_ fsbridge.DirReader        = (*Bridge)(nil)
	_ fsbridge.Walker           = (*Bridge)(nil)
	_ fsbridge.Hasher           = (*Bridge)(nil)
	_ fsbridge.Globber          = (*Bridge)(nil)
)

// New makes a bridge over client. It asks the server nothing. The client stays the caller's: the bridge
// never closes it, and fails with ErrUnavailable once it is closed.
func New(client *sftp.Client, opts Options) (*Bridge, error) {
	if client == nil {
		return nil, fmt.Errorf("sftp bridge: %w", errNoClient)
	}
	opts, err := opts.complete()
	if err != nil {
		return nil, fmt.Errorf("sftp bridge: %w", err)
	}
	return &Bridge{client: client, opts: opts, names: newStripes()}, nil
}

// has tells whether the server offers an extension.
func (b *Bridge) has(extension string) bool {
	_, ok := b.client.HasExtension(extension)
	return ok
}

// Declares implements fsbridge.Declarer.
func (b *Bridge) Declares(c fsbridge.Capability) bool {
	if c == fsbridge.CapCreateFileExclusive {
		return b.has(extHardlink)
	}
	return true
}

// Mounts returns the mount table.
func (b *Bridge) Mounts() fsbridge.MountTable {
	return append(fsbridge.MountTable(nil), b.opts.Mounts...)
}
