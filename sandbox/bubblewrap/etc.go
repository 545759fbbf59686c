package bubblewrap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxEtcFile bounds a file of /etc that is copied inside, in bytes.
const maxEtcFile = 1 << 20

// entry is one thing in the root directory of the sandbox beside the mounts that
// the configuration asks for. Exactly one of the sources is set.
type entry struct {
	path string
	// text is the content of a file.
	text string
	// copy is a file of this machine whose content is copied.
	copy string
	// bind is a directory or file of this machine, mounted read-only.
	bind string
	// link is the target of a symbolic link.
	link string
	// dir makes a directory with this mode.
	dir uint32
}

// etcFacts are what /etc inside depends on.
type etcFacts struct {
	account     account
	home, shell string
	hostname    string
	network     bool
}

// etc lists what /etc holds inside. It is a choice by name of what programs need
// and holds no secret: no shadow file, no keys, no host name, no settings that an
// administrator may have put a token into (environment, profile, gitconfig,
// npmrc). root is the directory whose etc is looked at, "/" but in tests.
func etc(root string, f etcFacts) []entry {
	out := []entry{
		{path: "/etc", dir: 0o755},
		{path: "/etc/passwd", text: passwdFor(f.account, f.home, f.shell)},
		{path: "/etc/group", text: groupFor(f.account)},
		{path: "/etc/hostname", text: f.hostname + "\n"},
		{path: "/etc/hosts", text: "127.0.0.1 localhost " + f.hostname + "\n::1 localhost ip6-localhost ip6-loopback\n"},
		{path: "/etc/nsswitch.conf", text: nsswitch(f.network)},
		{path: "/etc/mtab", link: "/proc/self/mounts"},
	}
	if text := linkerConf(root); text != "" {
		out = append(out, entry{path: "/etc/ld.so.conf", text: text})
	}
	files := []string{"ld.so.cache", "localtime", "timezone", "os-release", "services", "protocols", "ssl/openssl.cnf", "pki/tls/openssl.cnf"}
	if f.network {
		files = append(files, "resolv.conf")
	}
	for _, name := range files {
		if e, ok := etcFile(root, name); ok {
			out = append(out, e)
		}
	}
	dirs := []string{"alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates/extracted", "crypto-policies", "fonts"}
	javas, _ := filepath.Glob(filepath.Join(root, "etc", "java-*-openjdk"))
	for _, j := range javas[:min(len(javas), 8)] {
		dirs = append(dirs, filepath.Base(j))
	}
	for _, name := range dirs {
		path := filepath.Join(root, "etc", name)
		// A link could lead to a directory that was not chosen here.
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			out = append(out, entry{path: "/etc/" + name, bind: path})
		}
	}
	return withParents(out)
}

// etcFile decides how a file of /etc appears: a link into /usr as a link, the rest
// as a copy, if everybody on this machine may read it.
func etcFile(root, name string) (entry, bool) {
	path := filepath.Join(root, "etc", name)
	info, err := os.Lstat(path)
	if err != nil {
		return entry{}, false
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return entry{}, false
		}
		abs := target
		if !filepath.IsAbs(abs) {
			abs = filepath.Join("/etc", filepath.Dir(name), target)
		}
		if strings.HasPrefix(filepath.Clean(abs), "/usr/") {
			return entry{path: "/etc/" + name, link: target}, true
		}
		if info, err = os.Stat(path); err != nil {
			return entry{}, false
		}
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 || info.Size() > maxEtcFile {
		return entry{}, false
	}
	return entry{path: "/etc/" + name, copy: path}, true
}

// linkerConf is where libraries are looked for, all of it in one file: each file
// costs the start of a sandbox some time.
func linkerConf(root string) string {
	parts, _ := filepath.Glob(filepath.Join(root, "etc/ld.so.conf.d", "*.conf"))
	var b strings.Builder
	for _, p := range append([]string{filepath.Join(root, "etc/ld.so.conf")}, parts[:min(len(parts), 64)]...) {
		f, err := openCopy(p)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, 64<<10))
		_ = f.Close()
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "/") {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}

// nsswitch says where names are looked up: in files, with a network also by DNS.
func nsswitch(network bool) string {
	hosts := "files"
	if network {
		hosts = "files dns"
	}
	return "passwd: files\ngroup: files\nshadow: files\nhosts: " + hosts + "\nnetworks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n"
}

// withParents puts a directory before the first entry below it.
func withParents(entries []entry) []entry {
	made := map[string]bool{"/": true}
	var out []entry
	for _, e := range entries {
		var missing []string
		for p := filepath.Dir(e.path); !made[p]; p = filepath.Dir(p) {
			made[p] = true
			missing = append(missing, p)
		}
		for _, p := range slices.Backward(missing) {
			out = append(out, entry{path: p, dir: 0o755})
		}
		if e.dir != 0 && made[e.path] {
			continue
		}
		made[e.path] = true
		out = append(out, e)
	}
	return out
}

// openCopy opens the source of a copied file without waiting for anything.
func openCopy(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// memFile is a file without a name that holds data, to be read once.
func memFile(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
