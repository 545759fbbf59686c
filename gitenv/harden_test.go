package gitenv_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// C143: what becomes of the keys of a repository.
func TestHarden(t *testing.T) {
	fixed, err := gitenv.Harden()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		explanation string
		keys        []string
		want        []gitenv.Pair
	}{
		{"keys that run nothing", []string{"core.bare", "remote.origin.url", "filter.x.other", "diff.clean", "branch.x.merge"}, nil},
		{"a filter", []string{"filter.X.clean", "filter.X.smudge"}, []gitenv.Pair{pair("filter.X.clean", ""), pair("filter.X.required", "false"), pair("filter.X.smudge", "")}},
		{"a filter whose name has dots and an equals sign", []string{"filter.a.b=c.process"}, []gitenv.Pair{pair("filter.a.b=c.process", ""), pair("filter.a.b=c.required", "false")}},
		{"a filter whose name is empty", []string{"filter..clean"}, []gitenv.Pair{pair("filter..clean", ""), pair("filter..required", "false")}},
		{"any spelling", []string{"FILTER.x.Clean"}, []gitenv.Pair{pair("filter.x.clean", ""), pair("filter.x.required", "false")}},
		{"diff drivers", []string{"diff.y.textconv", "diff.y.command"}, []gitenv.Pair{pair("diff.y.textconv", "cat"), pair("diff.y.command", "")}},
		{"a merge driver", []string{"merge.z.driver"}, []gitenv.Pair{pair("merge.z.driver", "false")}},
		{"a pager", []string{"pager.log"}, []gitenv.Pair{pair("pager.log", "false")}},
		{
			"a remote", []string{"remote.o.uploadPack", "remote.o.receivePack", "remote.o.vcs"},
			[]gitenv.Pair{pair("remote.o.uploadpack", "git-upload-pack"), pair("remote.o.receivepack", "git-receive-pack"), pair("remote.o.vcs", "")},
		},
		{
			"the rest", []string{"trailer.t.cmd", "trailer.t.command", "tar.x.command", "submodule.s.update", "hook.h.command"},
			[]gitenv.Pair{pair("trailer.t.cmd", "true"), pair("trailer.t.command", "true"), pair("tar.x.command", "false"), pair("submodule.s.update", "checkout"), pair("hook.h.command", "true")},
		},
		{"repetitions", []string{"pager.log", "pager.log", "PAGER.LOG"}, []gitenv.Pair{pair("pager.log", "false")}},
	} {
		got, err := gitenv.Harden(tc.keys...)
		if err != nil || !samePairs(got[len(fixed):], tc.want) {
			t.Errorf("%s: %+v, %v; want %+v", tc.explanation, got, err, tc.want)
		}
	}
	var at *gitenv.PairError
	if got, err := gitenv.Harden("a.b", "bad"); !errors.As(err, &at) || at.Index != 1 || got != nil {
		t.Errorf("a bad key: %+v, %v", got, err)
	}
}

// C143: each fixed setting wins over a repository that wants the opposite.
func TestHardenWinsOverRepository(t *testing.T) {
	git := newGit(t)
	pairs, err := gitenv.Harden()
	if err != nil {
		t.Fatal(err)
	}
	env := git.environ()
	hardened := git.environ(parameters(mustFragment(t, pairs...)))
	git.must(t, env, "init", "-q", ".")
	for key, hostile := range map[string]string{
		"core.fsmonitor": "x", "core.hooksPath": "x", "core.pager": "x", "core.editor": "x", "sequence.editor": "x", "core.askPass": "x",
		"core.sshCommand": "x", "core.alternateRefsCommand": "x", "credential.helper": "x", "diff.external": "x", "interactive.diffFilter": "x",
		"commit.gpgSign": "true", "tag.gpgSign": "true", "push.gpgSign": "true", "log.showSignature": "true", "merge.verifySignatures": "true",
		"gpg.program": "x", "gpg.openpgp.program": "x", "gpg.x509.program": "x", "gpg.ssh.program": "x", "gpg.ssh.defaultKeyCommand": "x",
		"protocol.ext.allow": "always", "protocol.git.allow": "always", "init.templateDir": "x", "gc.auto": "1", "maintenance.auto": "true",
		"submodule.recurse": "true", "fetch.recurseSubmodules": "true", "diff.ignoreSubmodules": "none", "status.submoduleSummary": "true",
	} {
		git.must(t, env, "config", key, hostile)
		if got := git.must(t, hardened, "config", "--get", key); got == hostile+"\n" {
			t.Errorf("%s is still %q", key, hostile)
		}
		git.must(t, env, "config", "--unset", key)
	}
}

// trapRepository makes a repository whose configuration leaves a file in the returned directory for each program it
// gets to run.
func trapRepository(t *testing.T, git gitOracle) (repo, traps string) {
	t.Helper()
	repo, traps = filepath.Join(git.dir, "repo"), filepath.Join(git.dir, "traps")
	hooks := filepath.Join(repo, "hooks")
	for _, dir := range []string{traps, hooks} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	trap := func(name, then string) string { return "touch '" + filepath.Join(traps, name) + "'; " + then }
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(repo, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := git.environ()
	git.must(t, env, "init", "-q", repo)
	write(".gitattributes", "* filter=x diff=y merge=z\nempty filter=\nplain !diff\n", 0o644)
	write("f", "one\n", 0o644)
	write("empty", "one\n", 0o644)
	write("plain", "one\n", 0o644)
	git.must(t, env, "-C", repo, "add", ".")
	git.must(t, env, "-C", repo, "commit", "-q", "-m", "one")
	git.must(t, env, "-C", repo, "checkout", "-q", "-b", "side")
	write("f", "side\n", 0o644)
	git.must(t, env, "-C", repo, "commit", "-q", "-a", "-m", "side")
	git.must(t, env, "-C", repo, "checkout", "-q", "-")
	write("f", "two\n", 0o644)
	git.must(t, env, "-C", repo, "commit", "-q", "-a", "-m", "two")
	for _, hook := range []string{"pre-commit", "post-index-change", "post-checkout", "reference-transaction", "prepare-commit-msg", "post-merge", "proxy"} {
		write(filepath.Join("hooks", hook), "#!/bin/sh\n"+trap("hook-"+hook, "exit 0\n"), 0o755)
	}
	for key, value := range map[string]string{
		"core.fsmonitor": trap("fsmonitor", "false"), "core.hooksPath": hooks, "core.pager": trap("pager", "cat"), "core.editor": trap("editor", "true"),
		"core.sshCommand": trap("ssh", "false"), "core.gitProxy": filepath.Join(hooks, "proxy"), "diff.external": trap("diff-external", "true"),
		"filter.x.clean": trap("clean", "cat"), "filter.x.smudge": trap("smudge", "cat"), "filter.x.required": "true",
		"filter..clean":   trap("clean-empty", "cat"),
		"diff.y.textconv": trap("textconv", "cat"), "diff.y.command": trap("diff-command", "true"), "merge.z.driver": trap("merge", "true"),
		"gpg.program": filepath.Join(hooks, "pre-commit"), "commit.gpgSign": "true", "log.showSignature": "true",
		"credential.helper": "!" + trap("credential", "true"), "credential.https://h.helper": "!" + trap("credential-host", "true"),
		"protocol.ext.allow": "always", "tar.tar.gz.command": trap("tar", "cat"), "pager.log": trap("pager-log", "cat"),
	} {
		git.must(t, env, "-C", repo, "config", key, value)
	}
	return repo, traps
}

// useTrapRepository runs the git commands a host might and returns which traps went off.
func useTrapRepository(t *testing.T, git gitOracle, repo, traps, content string, env []string) []string {
	t.Helper()
	use := func(args ...string) { git.run(t, env, append([]string{"-C", repo}, args...)...) }
	use("merge", "--no-edit", "side")
	use("merge", "--abort")
	use("checkout", "-q", "side")
	use("checkout", "-q", "-")
	for _, name := range []string{"f", "empty", "plain"} {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"status"}, {"diff"}, {"diff", "plain"}, {"diff", "--no-ext-diff"}, {"add", "."}, {"commit", "-m", "next"}, {"log", "-p"},
		{"-p", "log", "-1"}, {"commit", "--amend"}, {"stash"}, {"blame", "f"}, {"gc", "--auto"},
		{"archive", "--format=tar.gz", "-o", filepath.Join(git.dir, "a.tar.gz"), "HEAD"},
		{"ls-remote", "ssh://nohost.invalid/x"}, {"ls-remote", "git://nohost.invalid/x"},
		{"ls-remote", "ext::touch " + filepath.Join(traps, "ext")},
	} {
		use(args...)
	}
	git.runInput(t, env, "protocol=https\nhost=h\n\n", "-C", repo, "credential", "fill")
	entries, err := os.ReadDir(traps)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// C143: a repository's configuration runs programs on the host; with the hardening settings it runs none.
func TestHardenAgainstGit(t *testing.T) {
	git := newGit(t)
	repo, traps := trapRepository(t, git)
	// A path that resolves ssh to a program that does nothing keeps the test off the network.
	bin := filepath.Join(git.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := git.environ("PATH=" + bin + ":" + os.Getenv("PATH"))

	keys := strings.Split(strings.TrimSuffix(git.must(t, env, "-C", repo, "config", "-z", "--list", "--name-only"), "\x00"), "\x00")
	pairs, err := gitenv.Harden(keys...)
	if err != nil {
		t.Fatal(err)
	}
	fragment := mustFragment(t, pairs...)
	hardened, err := gitenv.Apply(gitenv.Child{Placement: gitenv.LocalHost, Inherited: env}, &fragment)
	if err != nil {
		t.Fatal(err)
	}
	if got := useTrapRepository(t, git, repo, traps, "three\n", hardened); len(got) > 0 {
		t.Errorf("hardened, yet these ran: %q", got)
	}
	// The work itself goes on: status, add and commit succeeded, and a diff can be had.
	if out := git.must(t, hardened, "-C", repo, "log", "--format=%s", "-1"); out != "next\n" {
		t.Errorf("the commit is missing: %q", out)
	}
	if out := git.must(t, hardened, "-C", repo, "diff", "--no-ext-diff", "HEAD~1"); !strings.Contains(out, "+three") {
		t.Errorf("no diff: %q", out)
	}
	if out := git.must(t, hardened, "-C", repo, "status", "--porcelain", "-uno"); out != "" {
		t.Errorf("the work tree is not clean: %q", out)
	}

	// The same without the settings, so that the test above can fail.
	got := useTrapRepository(t, git, repo, traps, "four\n", env)
	for _, want := range []string{
		"fsmonitor", "hook-post-index-change", "hook-pre-commit", "clean", "clean-empty", "smudge", "textconv", "diff-command", "merge",
		"credential", "credential-host", "ssh", "ext", "tar", "hook-proxy", "diff-external", "editor",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("trap %s does not go off without hardening; only %q", want, got)
		}
	}
}
