package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// makeGuestDir makes the directory that a container sees read-only below sandbox.HelperPath, with the
// present helper in it. Containers refer to the directory, so that a newer helper serves an old
// container too.
func makeGuestDir(dir, helper string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the helper's directory: %w", err)
	}
	// The mode of what was made above depends on the umask; who runs inside must come through.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	target := filepath.Join(dir, filepath.Base(helperFile))
	if same(target, helper) {
		return nil
	}
	temporary := target + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := copyHelper(temporary, helper); err != nil {
		return fmt.Errorf("copy the helper: %w", err)
	}
	return os.Rename(temporary, target)
}

// same reports whether target is the very file, or a copy of it as it is now.
func same(target, helper string) bool {
	t, err := os.Stat(target)
	if err != nil {
		return false
	}
	h, err := os.Stat(helper)
	return err == nil && t.Size() == h.Size() && t.ModTime().Equal(h.ModTime()) && t.Mode().Perm()&0o555 == 0o555
}

// copyHelper copies the program with its time, executable for everybody.
func copyHelper(target, helper string) error {
	in, err := os.Open(helper)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(target, info.ModTime(), info.ModTime())
}
