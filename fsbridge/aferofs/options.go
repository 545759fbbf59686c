package aferofs

import (
	"errors"
	"fmt"
	"path"

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
	mounts := make(fsbridge.MountTable, len(o.Mounts))
	seen := map[string]bool{}
	for i, m := range o.Mounts {
		if !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path {
			return o, fmt.Errorf("mount %q is not an absolute, clean path: %w", m.Path, fsbridge.ErrInvalid)
		}
		if seen[m.Path] {
			return o, fmt.Errorf("mount %q is given twice: %w", m.Path, fsbridge.ErrInvalid)
		}
		seen[m.Path] = true
		if m.Kind == fsbridge.MountSystem {
			m.ReadOnly = true
		}
		mounts[i] = m
	}
	o.Mounts = mounts
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
