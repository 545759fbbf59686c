package hostmount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Walking to a mount point: what is made, for whom, and what is refused.
func TestMakeMountpoint(t *testing.T) {
	dir := t.TempDir()
	self := Account{UID: os.Geteuid(), GID: os.Getegid()}
	parent := Mount{Path: "/workspace", Source: dir}
	for _, c := range []struct {
		rest string
		file bool
		mode uint32
	}{
		{"a", false, unix.S_IFDIR}, {"a/b/c", false, unix.S_IFDIR}, {"a/f", true, unix.S_IFREG}, {"a/f", true, unix.S_IFREG}, {"x/y/f", true, unix.S_IFREG},
	} {
		if err := makeMountpoint(self, parent, c.rest, c.file); err != nil {
			t.Errorf("%s: %v", c.rest, err)
			continue
		}
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, c.rest), &st); err != nil || st.Mode&unix.S_IFMT != c.mode {
			t.Errorf("%s: mode %o, %v", c.rest, st.Mode, err)
		}
	}
	if err := makeMountpoint(self, parent, "a/b", true); err == nil {
		t.Error("a file was mounted over a directory")
	}
	parent.ReadOnly = true
	if err := makeMountpoint(self, parent, "a/b", false); err != nil {
		t.Errorf("an existing place in a read-only mount: %v", err)
	}
	if err := makeMountpoint(self, parent, "a/new", false); err == nil {
		t.Error("something was made in a read-only mount")
	}
	if os.Geteuid() != 0 {
		return
	}
	parent.ReadOnly = false
	const someone = 54321
	other := Account{UID: someone, GID: someone, Other: true}
	if err := makeMountpoint(other, parent, "p/q/f", true); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"p", "p/q", "p/q/f"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, p), &st); err != nil || st.Uid != someone {
			t.Errorf("%s belongs to %d, %v", p, st.Uid, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "a"), &st); err != nil || st.Uid != 0 {
		t.Errorf("a directory that was there was given to %d, %v", st.Uid, err)
	}
}
