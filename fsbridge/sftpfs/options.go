package sftpfs

import (
	"errors"
	"fmt"
	"time"

	"github.com/workberth/workberth/fsbridge"
)

// DefaultRequestTimeout is how long a server may take for one request.
const DefaultRequestTimeout = time.Minute

// Options describe a bridge over SFTP.
type Options struct {
	// Mounts are the permitted directories, as the server names them: absolute, clean and without
	// links. They must exist when they are used. One root is
	// MountTable{{Path: root, Kind: MountWorkspace}}.
	Mounts fsbridge.MountTable
	// ReadLimit bounds ReadFile and ReadRange, in bytes; zero means fsbridge.DefaultReadLimit.
	ReadLimit int64
	// RequestTimeout bounds the wait for each answer of the server; zero means
	// DefaultRequestTimeout. A listing is one request here, however long.
	RequestTimeout time.Duration
	// Assert is the guard; nil means none. Keeps FSB-10.
	Assert fsbridge.AssertFunc
}

// complete fills in defaults and checks the rest.
func (o Options) complete() (Options, error) {
	if len(o.Mounts) == 0 {
		return o, fmt.Errorf("no mounts are given, so that nothing would be permitted: %w", fsbridge.ErrInvalid)
	}
	var err error
	if o.Mounts, err = o.Mounts.Complete(); err != nil {
		return o, err
	}
	if o.ReadLimit < 0 || o.RequestTimeout < 0 {
		return o, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
	}
	if o.ReadLimit == 0 {
		o.ReadLimit = fsbridge.DefaultReadLimit
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	return o, nil
}

// errNoClient is returned for a missing client.
var errNoClient = errors.New("no SFTP client")
