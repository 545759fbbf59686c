package aferofs

import (
	"errors"
	"fmt"

	"github.com/workberth/workberth/fsbridge"
)

// Options describe a bridge over an afero.Fs.
type Options struct {
	// Mounts are the permitted directories, as the Fs names them. They must exist when they are
	// used. Nil means one writable workspace at "/".
	Mounts fsbridge.MountTable
	// Private says that nothing but this bridge changes the Fs while the bridge is used. Only then
	// are create-exclusive and rename declared.
	Private bool
	// ReadLimit bounds ReadFile and ReadRange, in bytes; zero means fsbridge.DefaultReadLimit.
	ReadLimit int64
	// Umask is taken off the mode of new files and directories; nil means 022.
	Umask *fsbridge.Mode
	// Assert is the guard; nil means none. Keeps FSB-10.
	Assert fsbridge.AssertFunc
}

// complete fills in defaults and checks the rest.
func (o Options) complete() (Options, error) {
	if o.Mounts == nil {
		o.Mounts = fsbridge.MountTable{{Path: "/", Kind: fsbridge.MountWorkspace}}
	}
	var err error
	if o.Mounts, err = o.Mounts.Complete(); err != nil {
		return o, err
	}
	if o.ReadLimit < 0 {
		return o, fmt.Errorf("the read limit is negative: %w", fsbridge.ErrInvalid)
	}
	if o.ReadLimit == 0 {
		o.ReadLimit = fsbridge.DefaultReadLimit
	}
	mask := fsbridge.Mode(0o022)
	if o.Umask != nil {
		mask = *o.Umask
	}
	if mask&^fsbridge.ModePerm != 0 {
		return o, fmt.Errorf("umask %#o has more than nine bits: %w", mask, fsbridge.ErrInvalid)
	}
	o.Umask = &mask
	return o, nil
}

// errNoFs is returned for a missing file system.
var errNoFs = errors.New("no file system")
