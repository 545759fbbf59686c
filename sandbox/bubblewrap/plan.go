package bubblewrap

import (
	"cmp"
	"path"
	"slices"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/internal/seccomp"
	"github.com/workberth/workberth/sandbox"
)

// rootTmpfs is the size of the root directory where it may be written, and shmTmpfs
// that of shared memory, in bytes. The root directory holds links, mount points and
// a few copies of files.
const (
	rootTmpfs = 256 << 20
	shmTmpfs  = 64 << 20
)

// helperFile is the guest helper's place inside.
const helperFile = sandbox.HelperPath + "/berth-guest"

// plan is everything about the start of one sandbox, decided before anything is
// done.
type plan struct {
	account account
	// userns is false only where root cannot make user namespaces.
	userns bool
	// network shares this machine's.
	network      bool
	hostname     string
	readOnlyRoot bool
	home         string
	shell        string
	// entries make up the root directory, mounts come on top.
	entries []entry
	mounts  []hostmount.Mount
	// bwrap is the program that does all this.
	bwrap string
	// helper is the program on this machine, helperArgs what it is told.
	helper     string
	helperArgs []string
	// copyHelper: the account cannot come to the program; it gets a copy.
	copyHelper bool
	filter     *seccomp.Filter
	// masked parts of /proc.
	maskedFiles, maskedDirs []string
}

// newPlan decides what a resolved spec needs. root is "/" but in tests.
func newPlan(root string, id sandbox.ID, spec sandbox.Spec, a account, mounts []hostmount.Mount, filter *seccomp.Filter) *plan {
	c := spec.Config
	p := &plan{
		account: a, userns: true, network: c.Network == networkHost, hostname: string(id),
		readOnlyRoot: c.ReadOnlyRoot, shell: shellOf(root), mounts: mounts, filter: filter,
	}
	p.home = homeOf(c, mounts)
	p.entries = slices.Concat(
		system(root),
		etc(root, etcFacts{account: a, home: p.home, shell: p.shell, hostname: p.hostname, network: p.network}),
		[]entry{{path: "/var", dir: 0o755}, {path: "/var/run", link: "../run"}},
	)
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if _, ok := hostmount.Find(mounts, dir); !ok {
			p.entries = append(p.entries, entry{path: dir, dir: 0o1777})
		}
	}
	p.maskedFiles, p.maskedDirs = procMasked(root, a)
	return p
}

// homeOf is the home directory inside: one of its own where something outside the
// workspace can be written, else the workspace, else none.
func homeOf(c sandbox.Config, mounts []hostmount.Mount) string {
	if m, ok := hostmount.Find(mounts, "/tmp"); ok && !m.ReadOnly || !c.ReadOnlyRoot {
		return "/tmp/home"
	}
	if ws, ok := hostmount.Find(mounts, hostmount.WorkspacePath(c)); ok && !ws.ReadOnly {
		return ws.Path
	}
	return "/"
}

// ownHome reports whether the home directory has to be made.
func (p *plan) ownHome() bool { return p.home == "/tmp/home" }

// env is the environment that every command starts from; the configuration and the
// command add to it. Nothing of this machine's environment is in it.
func (p *plan) env() sandbox.Env {
	return sandbox.Env{
		"PATH":    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME":    p.home,
		"USER":    p.account.Name(),
		"LOGNAME": p.account.Name(),
		"SHELL":   p.shell,
		"LANG":    "C.UTF-8",
	}
}

// layers are the mounts in the order they are made, with those that every sandbox
// has.
func (p *plan) layers() []hostmount.Mount {
	out := append([]hostmount.Mount{{Path: sandbox.HelperPath, Kind: fsbridge.MountSystem}}, p.mounts...)
	slices.SortFunc(out, func(a, b hostmount.Mount) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// tmpMode is the mode of scratch space: that of /tmp where others expect to write.
func tmpMode(p string) string {
	switch path.Clean(p) {
	case "/tmp", "/var/tmp":
		return "1777"
	}
	return "0755"
}
