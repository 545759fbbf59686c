package bubblewrap

import (
	"os"
	"path/filepath"
)

// system lists the directories of programs and libraries, as they are on this
// machine: /usr, and beside it links into it or directories of their own. root is
// "/" but in tests.
func system(root string) []entry {
	out := []entry{{path: "/usr", bind: filepath.Join(root, "usr")}}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		path := filepath.Join(root, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if target, err := os.Readlink(path); err == nil {
				out = append(out, entry{path: "/" + name, link: target})
			}
		case info.IsDir():
			out = append(out, entry{path: "/" + name, bind: path})
		}
	}
	return out
}

// procMasked are parts of /proc that tell about the whole machine, that a new
// process namespace does not hide, and that the account could read: descriptions
// of keys, and where the account is root on this machine also those that only the
// owner of the file may read. Those that do not exist are left out.
func procMasked(root string, a account) (files, dirs []string) {
	names, dirNames := []string{"keys"}, []string{}
	if a.UID == 0 {
		names = append(names, "timer_list", "sched_debug")
		dirNames = append(dirNames, "acpi", "scsi", "asound")
	}
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(root, "proc", name)); err == nil {
			files = append(files, "/proc/"+name)
		}
	}
	for _, name := range dirNames {
		if info, err := os.Lstat(filepath.Join(root, "proc", name)); err == nil && info.IsDir() {
			dirs = append(dirs, "/proc/"+name)
		}
	}
	return files, dirs
}

// shellOf is the shell that accounts inside have.
func shellOf(root string) string {
	for _, shell := range []string{"/bin/bash", "/bin/sh"} {
		if info, err := os.Stat(filepath.Join(root, shell)); err == nil && info.Mode().IsRegular() {
			return shell
		}
	}
	return "/bin/sh"
}
