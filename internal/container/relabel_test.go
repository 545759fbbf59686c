package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// planFor makes the plan of a sandbox on an engine with these means of confinement.
func planFor(t *testing.T, spec sandbox.Spec, security ...string) *plan {
	t.Helper()
	const scratch, own = "/state/scratch", "/state/guest"
	b := &Backend{opts: Options{Name: "docker"}, state: "0123456789abcdef"}
	mounts, err := hostmount.List(spec, scratch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.newPlan(
		sandbox.Resolved{Spec: spec, ID: "docker-0123456789abcdef"}, Description{Security: security}, hostmount.Account{}, mounts, Image{}, place{own: own, scratch: scratch})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where SELinux separates containers, directories of one sandbox alone get a label of its own, what
// another may see too gets the shared one, and memory gets none. Elsewhere nothing is labelled. C049
func TestLabels(t *testing.T) {
	ws, shared := t.TempDir(), t.TempDir()
	c := sandbox.DefaultConfig()
	c.Binds = []sandbox.Bind{{Source: shared, Target: "/data", ReadOnly: true}}
	type want struct{ relabel, private bool }
	for _, tc := range []struct {
		access sandbox.Access
		at     string
		want   want
	}{
		{sandbox.AccessReadWrite, "/workspace", want{true, false}},
		{sandbox.AccessReadOnly, "/agent", want{true, false}},
		{sandbox.AccessNone, "/workspace", want{true, true}},
		{sandbox.AccessNone, "/data", want{true, false}},
		{sandbox.AccessNone, sandbox.HelperPath, want{true, true}},
		{sandbox.AccessNone, "/tmp", want{false, false}},
	} {
		c.Access = tc.access
		spec := sandbox.Spec{Workspace: ws, Config: c}
		for _, security := range [][]string{{"seccomp", "selinux"}, {"seccomp", "apparmor"}, nil} {
			mounts := planFor(t, spec, security...).spec.Mounts
			i := slices.IndexFunc(mounts, func(m Mount) bool { return m.Target == tc.at })
			if i < 0 {
				t.Errorf("access %s: nothing at %s", tc.access, tc.at)
				continue
			}
			expect := tc.want
			if !slices.Contains(security, "selinux") {
				expect = want{}
			}
			if got := (want{mounts[i].Relabel, mounts[i].Private}); got != expect {
				t.Errorf("access %s, %q: %s is labelled %+v, want %+v", tc.access, security, tc.at, got, expect)
			}
		}
	}
}

// A home directory, the system's directories and what holds or lies in them never get another label:
// that is refused, with what to do instead, whatever was permitted. C049
func TestKeptLabels(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(home, 0o755), os.Symlink(home, link)); err != nil {
		t.Fatal(err)
	}
	facts := sandbox.SystemFacts(func(string) string { return "" })
	facts.Homes = []string{link, "relative", ""}
	b := &Backend{facts: facts}
	selinux := Description{Security: []string{"seccomp", "selinux"}}
	for source, kept := range map[string]bool{
		"/": true, "/etc": true, "/etc/ssl/certs": true, "/usr": true, "/usr/share/x": true, "/usrlocal": false, "/var": true, "/var/www/site": false,
		"/home": true, "/root": true, "/run/docker.sock": true, "/var/lib/docker/volumes/x": true, "/tmp": true, "/tmp/work": false, "/srv": true, "/srv/work": false,
		"/opt/work": false, "/boot/efi": true, "/dev/shm": true, "/proc": true, "/sys/fs": true, "/lib64": true, "/mnt": true, "/mnt/disk": false,
		home: true, filepath.Dir(home): true, filepath.Join(home, "proj"): false, filepath.Join(home, ".ssh"): true, filepath.Join(home, ".ssh/id"): true,
		filepath.Join(home, ".gnupg"): true, filepath.Join(home, ".config"): true, filepath.Join(home, ".config/tool"): false, home + "work": false,
	} {
		for _, m := range []hostmount.Mount{{Path: "/data", Source: source}, {Path: "/workspace", Source: source}} {
			mounts := []hostmount.Mount{{Path: "/tmp"}, m} // memory first
			err := b.checkLabels(selinux, mounts)
			var p *sandbox.Problem
			field := map[string]string{"/data": "binds", "/workspace": "workspace"}[m.Path]
			switch {
			case !kept && err != nil:
				t.Errorf("%s is refused: %v", source, err)
			case kept && (!errors.As(err, &p) || !errors.Is(err, sandbox.ErrRefused) || p.Field != field || p.Remedy == ""):
				t.Errorf("%s at %s: %v", source, m.Path, err)
			}
			if err := b.checkLabels(Description{Security: []string{"apparmor"}}, mounts); err != nil {
				t.Errorf("without SELinux %s is refused: %v", source, err)
			}
		}
	}
}
