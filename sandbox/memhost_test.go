package sandbox

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// memHost is a machine made of a map from clean absolute paths to what is there:
// "dir", "file", "socket", "fifo", "device", "file:content" or "->target".
type memHost map[string]string

func (m memHost) facts(home string, stateDirs ...string) HostFacts {
	return HostFacts{Homes: []string{home}, StateDirs: stateDirs, Lstat: m.lstat, EvalSymlinks: m.eval, ReadFile: m.read}
}

func (m memHost) lookup(p string) (string, error) {
	if p == "/" {
		return "dir", nil
	}
	if kind, ok := m[p]; ok {
		return kind, nil
	}
	for other := range m {
		if strings.HasPrefix(other, p+"/") {
			return "dir", nil
		}
	}
	return "", &fs.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
}

func (m memHost) eval(p string) (string, error) {
	done := "/"
	rest := strings.Split(p, "/")
	for links := 0; len(rest) > 0; {
		e := rest[0]
		rest = rest[1:]
		switch e {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		kind, err := m.lookup(path.Join(done, e))
		if err != nil {
			return "", err
		}
		target, link := strings.CutPrefix(kind, "->")
		if !link {
			done = path.Join(done, e)
			continue
		}
		if links++; links > 40 {
			return "", &fs.PathError{Op: "eval", Path: p, Err: syscall.ELOOP}
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

func (m memHost) lstat(p string) (fs.FileInfo, error) {
	kind, err := m.lookup(path.Clean(p))
	return memInfo{path.Base(p), kind}, err
}

func (m memHost) read(p string) ([]byte, error) {
	real, err := m.eval(p)
	if err != nil {
		return nil, err
	}
	kind, _ := m.lookup(real)
	if content, ok := strings.CutPrefix(kind, "file:"); ok {
		return []byte(content), nil
	}
	return nil, &fs.PathError{Op: "read", Path: p, Err: syscall.EISDIR}
}

type memInfo struct{ name, kind string }

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return 0 }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.kind == "dir" }
func (i memInfo) Sys() any           { return nil }

func (i memInfo) Mode() fs.FileMode {
	switch kind, _, _ := strings.Cut(i.kind, ":"); {
	case kind == "dir":
		return fs.ModeDir | 0o755
	case kind == "socket":
		return fs.ModeSocket | 0o600
	case kind == "fifo":
		return fs.ModeNamedPipe | 0o600
	case kind == "device":
		return fs.ModeDevice | 0o600
	case strings.HasPrefix(kind, "->"):
		return fs.ModeSymlink | 0o777
	}
	return 0o644
}

// testHost is a usual machine.
func testHost() memHost {
	return memHost{
		"/etc/hostname": "file", "/etc/ssl": "dir", "/proc/1": "dir", "/sys": "dir", "/dev/sda": "device", "/dev/null": "device", "/boot": "dir",
		"/root/x": "dir", "/usr/share": "dir", "/opt/tools": "dir", "/tmp": "dir",
		"/run/docker.sock": "socket", "/run/podman/podman.sock": "socket", "/run/user/1000/podman/podman.sock": "socket",
		"/run/media/ann/usb/work": "dir", "/run/other/pipe": "fifo", "/run/other/service.sock": "socket", "/var/run": "->/run", "/var/lib/docker": "dir", "/var/cache": "dir",
		"/home/ann/.ssh/id": "file", "/home/ann/.gnupg": "dir", "/home/ann/.aws": "dir", "/home/ann/.kube": "dir", "/home/ann/.docker": "dir",
		"/home/ann/.config/gcloud": "dir", "/home/ann/.config/other": "dir", "/home/ann/.config/berth": "dir",
		"/home/ann/work": "dir", "/home/ann/work/file.txt": "file", "/home/ann/data": "dir", "/home/ann/state/berth/x": "dir",
		"/home/ann/tools/dock": "->../../../run/docker.sock", "/home/ann/tools/keys": "->/home/ann/.ssh", "/home/ann/tools/loop": "->loop",
		"/home/ann/tools/up": "->../..", "/home/ann/tools/work": "->../work", "/home/ann/tools/away": "->/etc",
		"/home/bob/work": "dir", "/h/ann": "->/home/ann", "/x": "dir",
		"/home/ann/strict.json": `file:{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}`,
		"/home/ann/open.json":   `file:{"defaultAction":"SCMP_ACT_ALLOW"}`,
		"/home/ann/deny.json":   `file:{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mount"],"action":"SCMP_ACT_ERRNO"}]}`,
		"/home/ann/broken.json": `file:{`,
	}
}

// goodSpec is a spec on testHost that nothing is wrong with.
func goodSpec() Spec {
	return Spec{Scope: ScopeSession, Session: "s1", Workspace: "/home/ann/work", Config: DefaultConfig()}
}

func annFacts() HostFacts { return testHost().facts("/home/ann", "/home/ann/state/berth") }
