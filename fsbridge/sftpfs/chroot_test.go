//go:build linux

package sftpfs_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/sftpfs"
	"github.com/workberth/workberth/internal/sshtest"
)

// TestChrootedAccount is the usual SFTP-only host: an ordinary account that sees one directory as "/", owns
// a part of it, and can run nothing. C009 C033
func TestChrootedAccount(t *testing.T) {
	sshtest.Available(t)
	account := sshtest.NewAccount(t, "/usr/sbin/nologin", sshtest.AccountOptions{NoWriteHome: true})
	// sshd wants a root that nobody else could exchange, which nothing below /tmp is.
	root, err := os.MkdirTemp("/run", "sftpfs-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := errors.Join(os.Chmod(root, 0o755), os.Mkdir(root+"/ws", 0o755), os.Chown(root+"/ws", account.UID, account.GID)); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/theirs", "of root")
	server := sshtest.Start(t, sshtest.Options{Account: account, SFTPOnly: true, ExtraConfig: []string{"ChrootDirectory " + root}})
	client, err := sftpfs.Connect(t.Context(), server.Dial(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, server.Log())
	}
	t.Cleanup(func() { _ = client.Close() })
	b, ctx := bridge(t, client, "/"), t.Context()

	if err := b.WriteFile(ctx, "ws/a/b/f", []byte("x")); err != nil {
		t.Fatal(err)
	}
	holds(t, root+"/ws/a/b/f", "x")
	for target, at := range map[string]string{"/ws/a": "ws/absolute", "a/b": "ws/relative"} {
		if err := b.Symlink(ctx, target, at, fsbridge.SymlinkOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, p := range []string{"/ws/a/b/f", "ws/absolute/b/f", "ws/relative/f", "ws/a/../a/b/f"} {
		if got, err := b.ReadFile(ctx, p); err != nil || string(got) != "x" {
			t.Errorf("read %s: %q, %v", p, got, err)
		}
	}
	if _, err := b.ReadFile(ctx, "../theirs"); !errors.Is(err, fsbridge.ErrOutsideRoot) {
		t.Errorf("above the root: %v", err)
	}
	for what, err := range map[string]error{
		"new file":  b.WriteFile(ctx, "new", []byte("x")),
		"their own": b.WriteFile(ctx, "theirs", []byte("x")),
		"remove":    b.Remove(ctx, "theirs", fsbridge.RemoveOptions{}),
		"mkdir":     b.Mkdir(ctx, "d", fsbridge.MkdirOptions{}),
		"rename":    b.Rename(ctx, "ws/a/b/f", "f", fsbridge.RenameOptions{}),
	} {
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fsbridge.ErrOutcomeUnknown) {
			t.Errorf("%s where the account may not write: %v", what, err)
		}
	}
	holds(t, root+"/theirs", "of root")
	list, err := b.ReadDirectory(ctx, "/")
	if err != nil || len(list) != 2 || list[0].Name != "theirs" || list[1].Name != "ws" {
		t.Errorf("list: %+v, %v", list, err)
	}
	// A file of somebody else in a directory of the account's own can be replaced, and becomes its own.
	put(t, root+"/ws/shared", "of root")
	if err := errors.Join(os.Chmod(root+"/ws/shared", 0o664), b.WriteFile(ctx, "ws/shared", []byte("new"))); err != nil {
		t.Error(err)
	}
	if i, err := b.Stat(ctx, "ws/shared"); err != nil || i.Mode != 0o664 || int(i.UID) != account.UID {
		t.Errorf("replaced: %+v, %v", i, err)
	}
	if err := b.Remove(ctx, "ws/a", fsbridge.RemoveOptions{Recursive: true}); err != nil {
		t.Error(err)
	}
	tidy(t, root)
	tidy(t, root+"/ws")
}
