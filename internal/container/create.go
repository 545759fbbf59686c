package container

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// The networks that every engine has.
const (
	networkNone   = "none"
	networkBridge = "bridge"
	networkHost   = "host"
)

// helperFile is the guest helper's place inside. Its directory is one of this machine, read-only.
const helperFile = sandbox.HelperPath + "/berth-guest"

// homeInScratch is the home directory where there is scratch space for it.
const homeInScratch = "/tmp/home"

// plan is everything about a container, decided before anything is made.
type plan struct {
	account hostmount.Account
	mounts  []hostmount.Mount
	image   Image
	spec    Spec
	table   fsbridge.MountTable
	home    string
	workdir string
}

// place is where a container's own things come from: directories of this machine, or volumes of an engine
// on another one.
type place struct {
	// own is the directory that the helper is found in, scratch the one in place of the workspace, if any.
	own, scratch string
	// helper and volume are volumes: that of the helper, and the one in place of the workspace.
	helper, volume string
}

// newPlan decides what a resolved spec needs.
func (b *Backend) newPlan(
	r sandbox.Resolved, about Description, a hostmount.Account, mounts []hostmount.Mount, image Image, where place,
) (*plan, error) {
	c := r.Spec.Config
	seccomp, err := profile(c.SeccompProfile)
	if err != nil {
		return nil, err
	}
	p := &plan{
		account: a, mounts: mounts, image: image, table: hostmount.Table(mounts), home: homeOf(c, mounts),
		workdir: hostmount.Workdir(c, hostmount.WorkspacePath(c)),
	}
	p.table[0].ReadOnly = c.ReadOnlyRoot
	p.spec = Spec{
		Name: b.containerName(r.ID), Image: image.ID, Labels: b.labels(r),
		Argv: p.argv(where), User: fmt.Sprintf("%d:%d", a.InsideUID, a.InsideGID), Workdir: "/", Hostname: hostname(r.ID),
		ReadOnlyRoot: c.ReadOnlyRoot, Network: c.Network, PidMode: c.PidMode, CapAdd: c.CapAdd, Privileged: c.Privileged,
		Env: ownVariables(), Seccomp: seccomp, KeepID: about.Rootless && about.KeepsID, GPUs: c.GPUs,
	}
	if p.spec.PidMode == "private" {
		p.spec.PidMode = ""
	}
	for _, m := range mounts {
		mount := Mount{
			Target: m.Path, Source: m.Source, ReadOnly: m.ReadOnly, Size: m.Size, Mode: 0o1777, UID: a.InsideUID, GID: a.InsideGID,
		}
		if m.Kind == fsbridge.MountWorkspace {
			mount.Volume = where.volume
		}
		p.spec.Mounts = append(p.spec.Mounts, mount)
	}
	p.spec.Mounts = append(p.spec.Mounts, Mount{Target: sandbox.HelperPath, Source: where.own, Volume: where.helper, ReadOnly: true})
	if about.selinux() {
		label(p.spec.Mounts, where.own, where.scratch)
	}
	if where.volume != "" {
		p.spec.Attached = true
		p.spec.Labels[labelVolume], p.spec.Labels[labelHelper] = where.volume, where.helper
	}
	slices.SortStableFunc(p.spec.Mounts, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	return p, nil
}

// argv is what the container runs.
func (p *plan) argv(where place) []string {
	args := []string{helperFile, "call", sandbox.HelperPath}
	if where.volume != "" {
		args = []string{helperFile, "attached"}
	}
	for _, m := range p.table {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		args = append(args, fmt.Sprintf("--mount=%s:%s:%s", m.Kind, mode, m.Path))
	}
	if p.home == homeInScratch {
		args = append(args, "--home="+p.home)
	}
	return args
}

// ownVariables take back what an image may say to the runtime of the helper: commands alone are the
// image's business.
func ownVariables() []string {
	return []string{"GODEBUG=", "GOGC=", "GOMAXPROCS=", "GOMEMLIMIT=", "GOTRACEBACK="}
}

// env is the environment that every command starts from: the image's, and who and where we are.
func (p *plan) env() sandbox.Env {
	env := sandbox.Env{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG": "C.UTF-8",
	}
	for _, kv := range p.image.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			env[name] = value
		}
	}
	maps.Copy(env, sandbox.Env{"HOME": p.home, "USER": p.account.Name(), "LOGNAME": p.account.Name()})
	return env
}

// homeOf is the home directory inside: one of its own where there is scratch space, else the
// workspace where it can be written, else none.
func homeOf(c sandbox.Config, mounts []hostmount.Mount) string {
	if m, ok := hostmount.Find(mounts, path.Dir(homeInScratch)); ok && !m.ReadOnly {
		return homeInScratch
	}
	if ws, ok := hostmount.Find(mounts, hostmount.WorkspacePath(c)); ok && !ws.ReadOnly {
		return ws.Path
	}
	return "/"
}

// hostname is what a sandbox calls itself.
func hostname(id sandbox.ID) string { return string(id) }

// profile gives the system-call filter of a configuration, as Spec.Seccomp wants it.
func profile(name string) (*string, error) {
	switch name {
	case "", "default":
		return nil, nil //nolint:nilnil // the engine's own
	case "unconfined":
		none := ""
		return &none, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, &sandbox.Problem{
			Field: "seccompProfile", What: fmt.Sprintf("profile %q", name), Rule: err.Error(),
			Remedy: `name a file in the format of Docker profiles, or use "default"`, Err: fmt.Errorf("%w: %w", sandbox.ErrRefused, err),
		}
	}
	text := string(data)
	return &text, nil
}

// ownDir is the directory of this machine in which a container finds its helper.
func ownDir(claim *sandbox.Claim) string { return filepath.Join(claim.Dir(), "guest") }
