package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reach says how far the protection of a path goes. An ancestor of a protected
// path is always protected too, since it contains the path.
type reach int

const (
	// itself: the path, not what lies below it.
	itself reach = iota
	// everything: the path and everything below it.
	everything
)

// protectedPath is a path of this machine that must not appear inside.
type protectedPath struct {
	path  string
	reach reach
	why   string
	// except is a path below that is not protected by it.
	except string
}

// covers reports whether s, absolute and clean, lies below the path and is protected by it.
func (p protectedPath) covers(s string) bool {
	return p.reach == everything && pathWithin(p.path, s) && (p.except == "" || !pathWithin(p.except, s))
}

// protectedPaths lists them for this machine and user, each as it is usually
// written and without links.
func (f HostFacts) protectedPaths() []protectedPath {
	var out []protectedPath
	add := func(r reach, why string, paths ...string) {
		for _, p := range paths {
			if p = filepath.Clean(p); !filepath.IsAbs(p) {
				continue
			}
			out = append(out, protectedPath{path: p, reach: r, why: why})
			if real := f.resolve(p); real != p {
				out = append(out, protectedPath{path: real, reach: r, why: why})
			}
		}
	}
	add(itself, "it is the whole file system", "/")
	add(everything, "it holds the accounts and settings of this machine", "/etc")
	add(everything, "it is an interface of the kernel", "/proc", "/sys")
	add(everything, "it holds the devices of this machine", "/dev")
	add(everything, "it holds the kernel and its loader", "/boot")
	for _, run := range []string{"/run", "/var/run"} {
		// Removable disks are mounted in one place below it, which is no service.
		out = append(out, protectedPath{path: run, reach: everything, why: "it holds the sockets of this machine's services", except: run + "/media"})
	}
	add(everything, "it holds sockets of the user's services", "/run/user")
	add(everything, "it gives control over a container engine",
		"/run/docker.sock", "/var/run/docker.sock", "/run/docker", "/run/podman", "/run/containerd", "/run/crio",
		"/run/buildkit", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers")
	add(everything, "it gives control over a service of this machine", "/run/systemd", "/run/dbus", "/run/libvirt", "/run/lxd.socket", "/run/snapd.socket")
	add(everything, "it gives control over a container engine or an agent with keys", f.EngineSockets...)
	add(everything, "it is where this program keeps its own state", f.StateDirs...)

	administrator := true
	for _, home := range f.Homes {
		if !filepath.IsAbs(home) || filepath.Clean(home) == "/" {
			continue
		}
		administrator = administrator && !f.below(home, "/root")
		add(itself, "it is the whole home directory, keys and settings included", home)
		for _, s := range homeSecrets() {
			add(s.reach, s.why, filepath.Join(home, s.path))
		}
	}
	if administrator {
		add(everything, "it is the home directory of the administrator", "/root")
	}
	return out
}

// homeSecrets are the paths below a home directory that hold keys, or give
// control over an engine.
func homeSecrets() []protectedPath {
	const keys = "it holds keys or passwords"
	const engine = "it gives control over a container engine"
	var out []protectedPath
	for _, p := range []string{
		".ssh", ".gnupg", ".pki", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".config/hub", ".config/op",
		".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".password-store", ".vault-token",
		".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".codex", ".config/berth", ".local/state/berth",
	} {
		out = append(out, protectedPath{path: p, reach: everything, why: keys})
	}
	for _, p := range []string{
		".docker", ".config/containers", ".local/share/containers", ".local/share/docker", ".colima", ".rd", ".orbstack", ".lima",
	} {
		out = append(out, protectedPath{path: p, reach: everything, why: engine})
	}
	return out
}

// below reports whether path is root or lies below it, without links.
func (f HostFacts) below(path, root string) bool {
	return pathWithin(f.resolve(root), f.resolve(path))
}

// pathWithin reports whether p is root or lies below it, by path elements.
func pathWithin(root, p string) bool {
	return root == "/" || p == root || strings.HasPrefix(p, root) && p[len(root)] == '/'
}

// protectedBy tells why the source path, an absolute path of this machine, must
// not appear inside; "" means that it may.
func (v *validator) protectedBy(source string) string {
	spelled := filepath.Clean(source)
	real := v.host.resolve(source)
	info, err := v.host.Lstat(real)
	for _, p := range v.protected {
		for _, s := range []string{spelled, real} {
			switch {
			case s == p.path:
				return p.why
			case pathWithin(s, p.path):
				return fmt.Sprintf("it contains %s: %s", p.path, p.why)
			case p.covers(s):
				return fmt.Sprintf("it lies in %s: %s", p.path, p.why)
			}
		}
		// The same file under another name: a hard link or a bind mount.
		if err == nil {
			if other, e := v.host.Lstat(p.path); e == nil && os.SameFile(info, other) {
				return fmt.Sprintf("it is %s under another name: %s", p.path, p.why)
			}
		}
	}
	if err == nil {
		switch info.Mode().Type() {
		case fs.ModeSocket:
			return "it is the socket of a service of this machine"
		case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
			return "it is a device of this machine"
		case fs.ModeNamedPipe:
			return "it is a pipe to a process of this machine"
		}
	}
	return ""
}

// systemTargets are the paths inside that a mount of the user must not cover:
// the sandbox would not work, or its walls would be something else.
func systemTargets() []protectedPath {
	const system = "it would cover the system inside"
	var out []protectedPath
	for _, p := range []string{"/proc", "/sys", "/dev"} {
		out = append(out, protectedPath{path: p, reach: everything, why: "it is an interface of the kernel inside"})
	}
	for _, p := range []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64",
		"/etc", "/boot", "/etc/passwd", "/etc/group", "/etc/ld.so.preload", "/etc/ld.so.cache",
	} {
		out = append(out, protectedPath{path: p, reach: itself, why: system})
	}
	return out
}

// coveredBy tells why nothing may be mounted at the absolute path target inside;
// "" means that it may.
func coveredBy(target string) string {
	target = filepath.Clean(target)
	if target == "/" {
		return "it is the root inside"
	}
	if pathWithin(HelperPath, target) {
		return "it is where the guest helper lies"
	}
	for _, p := range systemTargets() {
		if target == p.path || pathWithin(target, p.path) || p.covers(target) {
			return p.why
		}
	}
	return ""
}

// reason is the shortest text of a file system error.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
