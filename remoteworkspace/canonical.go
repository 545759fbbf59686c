package remoteworkspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
)

// names are the spellings a directory is recognised by: the one given, without
// superfluous elements, and its true name where that differs.
func (r *Registry) names(dir string) ([]string, error) {
	if err := fsbridge.ValidPath(dir); err != nil {
		return nil, fmt.Errorf("workspace directory: %w", err)
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("workspace directory %s: it must be absolute: %w", fsbridge.DisplayPath(dir), ErrInvalid)
	}
	clean := filepath.Clean(dir)
	real, err := r.canonical(clean)
	if err != nil || real == clean || real == "" {
		return []string{clean}, nil //nolint:nilerr // the spelling alone counts
	}
	return []string{clean, real}, nil
}

// resolveLinks gives the true name of dir, of which the last elements may be missing:
// a bound workspace has no directory on this machine.
func resolveLinks(dir string) (string, error) {
	rest := ""
	for at := dir; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = filepath.Dir(at)
	}
}
