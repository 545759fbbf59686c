package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/sandbox"
)

// errNoUserNamespaces is why bwrap failed where the kernel lets this user make no
// user namespaces. Root can do without.
var errNoUserNamespaces = errors.New("user namespaces cannot be made")

// Sentences of bwrap. They are matched in parts that its versions share.
var (
	sourceMissing = regexp.MustCompile(`Can't find source path (.+): ([^:]+)$`)
	execFailed    = regexp.MustCompile(`execvp (\S+): (.+)$`)
	unknownOption = regexp.MustCompile(`Unknown option (\S+)`)
)

// failure explains a bwrap that ended before the helper spoke. said is its
// stderr, how tells its end.
func failure(said, how string, settings kernelSettings) error {
	line := lastMessage(said)
	unavailable := func(what, rule, remedy string, cause error) error {
		return &sandbox.Problem{What: what, Rule: rule, Remedy: remedy, Err: join(sandbox.ErrUnavailable, cause)}
	}
	switch {
	case namespacesForbidden(line):
		rule, remedy := settings.explain()
		return unavailable("bubblewrap cannot make namespaces", rule+" ("+line+")", remedy, errNoUserNamespaces)
	case strings.Contains(line, "loopback: Failed"):
		rule, remedy := settings.explain()
		return unavailable("bubblewrap cannot set up the sandbox's own network", rule+" ("+line+")", remedy, errNoUserNamespaces)
	case unknownOption.MatchString(line):
		return unavailable("the installed bubblewrap is too old", "it does not know the option "+unknownOption.FindStringSubmatch(line)[1],
			"install bubblewrap "+minVersion+" or newer", nil)
	case sourceMissing.MatchString(line):
		m := sourceMissing.FindStringSubmatch(line)
		return &sandbox.Problem{
			What: fmt.Sprintf("%q cannot be mounted", m[1]), Rule: m[2],
			Remedy: "see that it exists and that the sandbox's user has access to it",
			Err:    join(sandbox.ErrRefused, errnoOf(m[2])),
		}
	case execFailed.MatchString(line) && strings.Contains(line, helperFile):
		m := execFailed.FindStringSubmatch(line)
		return unavailable("the guest helper cannot be executed", m[2],
			"keep the program on a file system that permits execution, readable and executable for everybody", errnoOf(m[2]))
	case strings.Contains(strings.ToLower(line), "seccomp"):
		return unavailable("the system-call filter cannot be loaded", line, "use a kernel with CONFIG_SECCOMP_FILTER", nil)
	case line != "":
		return unavailable("bubblewrap failed", line+" ("+how+")", "run the check of this backend; it says what is missing", nil)
	}
	return unavailable("the sandbox ended before it was ready", how, "run the check of this backend; it says what is missing", nil)
}

// namespacesForbidden recognises what bwrap says when the kernel refuses it.
func namespacesForbidden(line string) bool {
	for _, part := range []string{
		"No permissions to creating new namespace", "No permissions to create new namespace", "No permissions to create a new namespace",
		"Creating new namespace failed", "setting up uid map", "setting up gid map",
		"Failed to make / slave", "error creating user namespace", "Creating new user ns failed", "unshare user ns",
	} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// lastMessage is the last line that bwrap said, without its name.
func lastMessage(said string) string {
	message := ""
	for line := range strings.Lines(said) {
		if m, ok := strings.CutPrefix(strings.TrimSpace(line), "bwrap: "); ok {
			message = m
		}
	}
	if len(message) > 500 {
		message = message[:500]
	}
	return message
}

// errnoOf finds the error number of a text of strerror.
func errnoOf(text string) error {
	for _, e := range []unix.Errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.ELOOP, unix.ENOEXEC, unix.ENOSPC, unix.ENOMEM} {
		if strings.EqualFold(strings.TrimSpace(text), e.Error()) {
			return e
		}
	}
	return nil
}

// join wraps a sentinel with a cause, where there is one.
func join(sentinel, cause error) error {
	if cause == nil {
		return sentinel
	}
	return fmt.Errorf("%w: %w", sentinel, cause)
}

// startFailure explains a bwrap that could not even be started.
func startFailure(bwrap string, err error) error {
	p := &sandbox.Problem{
		What: fmt.Sprintf("%s cannot be started", bwrap), Rule: err.Error(), Remedy: installRemedy,
		Err: join(sandbox.ErrUnavailable, err),
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		p.Remedy = "see that the program may be executed, and that this process may start it as another user"
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE):
		p.Remedy = "a limit on processes, memory or open files is reached: end something, or raise it"
	}
	return p
}

// installRemedy says how bwrap gets onto the machine.
const installRemedy = "install bubblewrap: apt-get install bubblewrap, dnf install bubblewrap, apk add bubblewrap or pacman -S bubblewrap"

// findBwrap finds the program, by its path or on the search path of the
// environment. A relative entry of that is passed over: it would be searched where
// we happen to stand.
func findBwrap(explicit, searchPath string) (string, error) {
	missing := func(rule string, err error) error {
		return &sandbox.Problem{What: "the program bwrap was not found", Rule: rule, Remedy: installRemedy, Err: join(sandbox.ErrUnavailable, err)}
	}
	if explicit != "" {
		path, err := exec.LookPath(explicit)
		if err != nil {
			return "", missing(err.Error(), err)
		}
		return path, nil
	}
	for dir := range strings.SplitSeq(searchPath, string(os.PathListSeparator)) {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		if path, err := exec.LookPath(dir + "/bwrap"); err == nil {
			return path, nil
		}
	}
	return "", missing("it is in no directory of PATH", fs.ErrNotExist)
}
