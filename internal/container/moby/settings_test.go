package moby

import (
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
)

func plain(mounts ...container.Mount) container.Spec {
	return container.Spec{Name: "n", Image: "i", Argv: []string{"/bin/true"}, User: "1:1", Network: "none", ReadOnlyRoot: true, Mounts: mounts}
}

// A label for SELinux is asked for where it is wanted and nowhere else: one of the container's own, or
// the one that all containers have. C049
func TestLabels(t *testing.T) {
	for _, tc := range []struct {
		m     container.Mount
		binds []string
		fails bool
	}{
		{m: container.Mount{Target: "/w", Source: "/s"}},
		{m: container.Mount{Target: "/w", Source: "/s", Relabel: true}, binds: []string{"/s:/w:rw,z"}},
		{m: container.Mount{Target: "/w", Source: "/s", Relabel: true, Private: true}, binds: []string{"/s:/w:rw,Z"}},
		{m: container.Mount{Target: "/w", Source: "/s", Relabel: true, ReadOnly: true}, binds: []string{"/s:/w:ro,z"}},
		{m: container.Mount{Target: "/w", Source: "/s,x", Relabel: true}, binds: []string{"/s,x:/w:rw,z"}},
		{m: container.Mount{Target: "/w", Source: "/s:/etc", Relabel: true}, fails: true},
		{m: container.Mount{Target: "/w:ro", Source: "/s", Relabel: true}, fails: true},
	} {
		_, host, err := settings(plain(tc.m))
		if tc.fails != (err != nil) {
			t.Errorf("%+v: %v", tc.m, err)
			continue
		}
		if err == nil && !slices.Equal(host.Binds, tc.binds) {
			t.Errorf("%+v: binds %q, want %q", tc.m, host.Binds, tc.binds)
		}
		if err == nil && len(host.Binds) == 0 && (len(host.Mounts) != 1 || host.Mounts[0].Source != tc.m.Source) {
			t.Errorf("%+v: mounts %+v", tc.m, host.Mounts)
		}
	}
}

// Volumes of an image are closed below a read-only root, with what the engine closes anyway; not those
// that something is mounted at, and not where the root can be written. C055
func TestCloseVolumes(t *testing.T) {
	_, host, err := settings(plain(container.Mount{Target: "/tmp", Size: 1}))
	if err != nil {
		t.Fatal(err)
	}
	closeVolumes(host, plain(container.Mount{Target: "/tmp"}), []string{"/data", "tmp/", "/x/../y"})
	got := strings.Join(host.ReadonlyPaths, " ")
	if want := "/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger /data /y"; got != want {
		t.Errorf("read-only are %q, want %q", got, want)
	}
	for name, change := range map[string]func(*container.Spec){
		"writable root": func(s *container.Spec) { s.ReadOnlyRoot = false }, "privileged": func(s *container.Spec) { s.Privileged = true },
	} {
		s := plain()
		change(&s)
		_, host, err := settings(s)
		if err != nil {
			t.Fatal(err)
		}
		closeVolumes(host, s, []string{"/data"})
		if host.ReadonlyPaths != nil {
			t.Errorf("%s: %q", name, host.ReadonlyPaths)
		}
	}
	// Without a volume the engine's own list stays its own.
	_, host, _ = settings(plain())
	closeVolumes(host, plain(), []string{})
	if host.ReadonlyPaths != nil {
		t.Errorf("no volume: %q", host.ReadonlyPaths)
	}
}
