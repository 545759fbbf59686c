//go:build linux

package reaper

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// defaultPath is where commands are looked for when the environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// getenv returns the value of a key; the last one counts.
func getenv(env []string, key string) (value string, ok bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, found := strings.Cut(env[i], "="); found && k == key {
			return v, true
		}
	}
	return "", false
}

// lookup finds the file to execute for a command's name, as execvp does: a name
// with a slash is a path, another one is looked for in the PATH of env, where an
// empty element means the working directory. It runs in the command's working
// directory.
func lookup(name string, env []string) (string, *startFailure) {
	if strings.Contains(name, "/") {
		switch err := executable(name); {
		case err == nil:
			return name, nil
		case isMissing(err):
			return "", &startFailure{reason: proc.NoCommand, what: name, errno: errnoOf(err)}
		default:
			return "", notExecutable(name, err)
		}
	}
	search, ok := getenv(env, "PATH")
	if !ok {
		search = defaultPath
	}
	var refused *startFailure
	for dir := range strings.SplitSeq(search, ":") {
		if dir == "" {
			dir = "."
		}
		file := strings.TrimSuffix(dir, "/") + "/" + name
		switch err := executable(file); {
		case err == nil:
			return file, nil
		case !isMissing(err) && refused == nil:
			refused = notExecutable(file, err)
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &startFailure{
		reason: proc.NoCommand, what: name, errno: unix.ENOENT,
		detail: fmt.Sprintf("not found on PATH %q", shorten(search)),
	}
}

// shorten keeps a text that is only shown within bounds.
func shorten(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// isMissing tells that there is no file of that name.
func isMissing(err error) bool {
	switch errnoOf(err) {
	case unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP:
		return true
	}
	return false
}

// errnoOf returns the errno in err, or zero.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return 0
}

// executable returns nil for a file this process may execute.
func executable(file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
	case unix.S_IFDIR:
		return unix.EISDIR
	}
	return errNotAFile
}

var errNotAFile = errors.New("not a regular file")

// notExecutable explains why a file that is there cannot be executed.
func notExecutable(file string, err error) *startFailure {
	f := &startFailure{reason: proc.NotExecutable, what: file, errno: errnoOf(err)}
	switch f.errno {
	case 0:
		f.detail = err.Error()
	case unix.EACCES:
		f.detail = "permission denied: the file is not executable for this user, or lies on a mount without exec"
	case unix.EISDIR:
		f.detail = "it is a directory"
	}
	return f
}

// execFailure explains why execve of a file that passed lookup failed.
func execFailure(file string, err error) *startFailure {
	errno := errnoOf(err)
	f := &startFailure{reason: proc.NotExecutable, what: file, errno: errno}
	switch errno {
	case unix.ENOEXEC:
		f.detail = "not a program for this machine, and no script either: a script needs a first line like #!/bin/sh"
		if head := fileHead(file); bytes.HasPrefix(head, []byte("\x7fELF")) {
			f.detail = "built for another kind of machine"
		}
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG:
		f.detail = "the program that interprets it is missing"
		if name := interpreter(fileHead(file)); name != "" {
			f.detail = fmt.Sprintf("its interpreter %q is missing", name)
		} else if executable(file) != nil {
			f.reason, f.detail = proc.NoCommand, "" // removed since it was looked up
		}
	case unix.EACCES, unix.EPERM:
		f.detail = "permission denied: the file or its interpreter is not executable for this user, or lies on a mount without exec"
	case unix.E2BIG:
		f.reason, f.detail = proc.BadSpec, "arguments and environment are larger than the system allows"
	case unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.ENOSPC:
		f.reason = proc.LimitReached
	case unix.ETXTBSY:
		f.detail = "the file is still open for writing"
	case unix.ELIBBAD, unix.EINVAL, unix.EIO, unix.EISDIR:
	default:
		f.reason = proc.Internal
	}
	return f
}

// fileHead returns the first bytes of a file that is only described by them.
func fileHead(file string) []byte {
	fd, err := open(file, unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	b := make([]byte, 256)
	n, err := read(fd, b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// interpreter returns the interpreter a script's first line names.
func interpreter(head []byte) string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	if f := bytes.Fields(line); len(f) > 0 {
		return string(f[0])
	}
	return ""
}
