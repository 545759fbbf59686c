package gitenv_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// C145: exact paths only.
func TestSafeDirectories(t *testing.T) {
	for _, tc := range []struct {
		explanation string
		paths       []string
		want        string
	}{
		{"nothing", nil, ""},
		{"one", []string{"/workspace"}, `'safe.directory=/workspace'`},
		{"a work tree and its git directory", []string{"/w t", "/r/.git/worktrees/w"}, `'safe.directory=/w t' 'safe.directory=/r/.git/worktrees/w'`},
		{"quotes, marks and line feeds", []string{"/it's\n!"}, "'safe.directory=/it'\\''s\n'\\!''"},
		{"git would not match a trailing or a doubled slash", []string{"/a//b/./c/"}, `'safe.directory=/a/b/c'`},
		{"repetitions", []string{"/a", "/a/", "/b", "/a"}, `'safe.directory=/a' 'safe.directory=/b'`},
		{"a star within a name is a name", []string{"/a*", "/*b/c"}, `'safe.directory=/a*' 'safe.directory=/*b/c'`},
		{"dots within a name", []string{"/..a/b.."}, `'safe.directory=/..a/b..'`},
	} {
		if got, err := gitenv.SafeDirectories(tc.paths...); err != nil || got != tc.want {
			t.Errorf("%s: %s, %v; want %s", tc.explanation, got, err, tc.want)
		}
	}
	for _, bad := range []string{"", "*", ".", "ws", "./ws", "~/ws", "%(prefix)/ws", "/ws/*", "/*", "/ws/*/", "/ws/./*", "/a/../b", "/..", "/a\x00b"} {
		if got, err := gitenv.SafeDirectories("/good", bad); !errors.Is(err, gitenv.ErrPath) || got != "" {
			t.Errorf("SafeDirectories(%q) = %q, %v; want ErrPath", bad, got, err)
		}
	}
}

// C145: git accepts the mounted repository and its linked work tree of another owner, and nothing else; nothing is
// written to a person's configuration.
func TestSafeDirectoriesAgainstGit(t *testing.T) {
	git := newGit(t)
	dir, err := filepath.EvalSymlinks(git.dir)
	if err != nil {
		t.Fatal(err)
	}
	repo, linked, other := filepath.Join(dir, "work space"), filepath.Join(dir, "it's linked!"), filepath.Join(dir, "other")
	env := git.environ()
	git.must(t, env, "init", "-q", repo)
	git.must(t, env, "-C", repo, "commit", "-q", "--allow-empty", "-m", "x")
	git.must(t, env, "-C", repo, "worktree", "add", "-q", "-b", "side", linked)
	git.must(t, env, "init", "-q", other)

	// Git has a switch for its own tests that makes every owner a stranger; as root a real one can be had too.
	foreign := []string{"GIT_TEST_ASSUME_DIFFERENT_OWNER=1"}
	if os.Geteuid() == 0 {
		foreign = nil
		for _, tree := range []string{repo, linked, other} {
			if err := filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, 1234, 1234)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	fragment, err := gitenv.SafeDirectories(repo+"/", linked, filepath.Join(repo, ".git", "worktrees", filepath.Base(linked)))
	if err != nil {
		t.Fatal(err)
	}
	safe, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Inherited: git.environ(foreign...)}, &fragment)
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range []string{repo, linked} {
		if _, errs, status := git.run(t, git.environ(foreign...), "-C", tree, "status"); status != 128 || !strings.Contains(errs, "dubious ownership") {
			t.Errorf("%s without the fragment: status %d, %s", tree, status, errs)
		}
		if _, errs, status := git.run(t, safe, "-C", tree, "status"); status != 0 {
			t.Errorf("%s with the fragment: status %d, %s", tree, status, errs)
		}
	}
	if _, _, status := git.run(t, safe, "-C", other, "status"); status != 128 {
		t.Errorf("another repository is accepted: status %d", status)
	}
	want := repo + "\n" + linked + "\n" + filepath.Join(repo, ".git", "worktrees", filepath.Base(linked)) + "\n"
	if got := git.must(t, safe, "config", "--get-all", "safe.directory"); got != want {
		t.Errorf("safe.directory is %q, want %q", got, want)
	}
	if _, err := os.Lstat(filepath.Join(git.dir, ".gitconfig")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a .gitconfig was written: %v", err)
	}
}
