package gitenv_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/gitenv"
)

// A gitOracle runs the installed git, cut off from the configuration of the machine and of the person.
type gitOracle struct {
	bin, dir string
}

// newGit returns an oracle in a directory of its own that is in no repository. Without git the test is skipped, or
// fails if BERTH_REQUIRE_ENGINES=1.
func newGit(tb testing.TB) gitOracle {
	tb.Helper()
	git, err := findGit(tb)
	if err != nil {
		tb.Skipf("git is not installed: %v", err)
	}
	return git
}

// findGit is newGit for tests that have something to check without git, too.
func findGit(tb testing.TB) (gitOracle, error) {
	tb.Helper()
	bin, err := exec.LookPath("git")
	if err != nil && os.Getenv("BERTH_REQUIRE_ENGINES") == "1" {
		tb.Fatalf("git is required: %v", err)
	}
	return gitOracle{bin: bin, dir: tb.TempDir()}, err
}

// environ returns the isolated environment with extra entries.
func (g gitOracle) environ(extra ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES=" + g.dir,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}, extra...)
}

// run executes git and returns its output and its exit status.
func (g gitOracle) run(tb testing.TB, env []string, args ...string) (stdout, stderr string, status int) {
	tb.Helper()
	return g.runInput(tb, env, "", args...)
}

// runInput is run with something on standard input.
func (g gitOracle) runInput(tb testing.TB, env []string, stdin string, args ...string) (stdout, stderr string, status int) {
	tb.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(tb.Context(), g.bin, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = g.dir, env, strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.String(), errs.String(), exit.ExitCode()
	}
	if err != nil {
		tb.Fatalf("git %q: %v", args, err)
	}
	return out.String(), errs.String(), 0
}

// must is run for commands that have to succeed.
func (g gitOracle) must(tb testing.TB, env []string, args ...string) string {
	tb.Helper()
	out, errs, status := g.run(tb, env, args...)
	if status != 0 {
		tb.Fatalf("git %q: status %d: %s", args, status, errs)
	}
	return out
}

// list returns what git takes from the extra environment entries, and whether it accepts them.
func (g gitOracle) list(tb testing.TB, extra ...string) (pairs []gitenv.Pair, accepted bool) {
	tb.Helper()
	out, errs, status := g.run(tb, g.environ(extra...), "config", "-z", "--list")
	switch status {
	case 0:
	case 128:
		return nil, false
	default:
		tb.Fatalf("git config --list: status %d: %s", status, errs)
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		key, value, found := strings.Cut(entry, "\n")
		pairs = append(pairs, gitenv.Pair{Key: key, Value: value, Valueless: !found})
	}
	return pairs, true
}

// parameters returns the environment entry for a value of GIT_CONFIG_PARAMETERS.
func parameters(value string) string { return gitenv.ParametersVar + "=" + value }

// ptr returns a pointer to a copy of s.
func ptr(s string) *string { return &s }

// samePairs compares two lists; nil and empty are the same.
func samePairs(a, b []gitenv.Pair) bool { return slices.Equal(a, b) }

// mustFragment is Fragment for pairs known to be good.
func mustFragment(tb testing.TB, pairs ...gitenv.Pair) string {
	tb.Helper()
	f, err := gitenv.Fragment(pairs...)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}
