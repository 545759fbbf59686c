package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Hosts as they are met, by what they show in /proc.
func TestFind(t *testing.T) {
	const (
		v1mounts = `30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/pids rw master:1 - cgroup cgroup rw,pids
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
		v2mounts = `24 1 0:22 / /sys rw - sysfs sysfs rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
`
	)
	for name, c := range map[string]struct {
		membership, mounts string
		v1                 map[Controller]string
		v2, v2top          string
	}{
		"version 2 with systemd": {
			membership: "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", mounts: v2mounts,
			v2: "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope", v2top: "/sys/fs/cgroup",
		},
		"version 1": {
			membership: "4:memory:/a/b\n3:pids:/\n2:cpu,cpuacct:/c:d\n1:name=systemd:/x\n0::/\n", mounts: v1mounts,
			v1: map[Controller]string{Memory: "/sys/fs/cgroup/memory/a/b", Pids: "/sys/fs/cgroup/pids", CPU: "/sys/fs/cgroup/cpu,cpuacct/c:d"},
			v2: "/sys/fs/cgroup/unified", v2top: "/sys/fs/cgroup/unified",
		},
		"a container that sees its own part": {
			membership: "4:memory:/docker/abc/inner\n3:pids:/docker/abcdef\n",
			mounts: `1 1 0:1 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
2 1 0:2 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids
`,
			v1: map[Controller]string{Memory: "/sys/fs/cgroup/memory/inner"},
		},
		"a mount point with a blank": {
			membership: "0::/g\n", mounts: `1 1 0:1 / /mnt/a\040b rw - cgroup2 none rw` + "\n",
			v2: "/mnt/a b/g", v2top: "/mnt/a b",
		},
		"nothing":  {},
		"nonsense": {membership: "x\n::\n1:pids\n", mounts: "a b - c\n - \ncgroup\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := find([]byte(c.membership), []byte(c.mounts))
			if !maps.Equal(h.v1, c.v1) || h.v2 != c.v2 || h.v2top != c.v2top {
				t.Errorf("got v1 %v, v2 %q below %q; want %v, %q, %q", h.v1, h.v2, h.v2top, c.v1, c.v2, c.v2top)
			}
		})
	}
}

func FuzzFind(f *testing.F) {
	f.Add("0::/a\n", "1 1 0:1 / /m rw - cgroup2 none rw\n")
	f.Add("1:pids,cpu:/a\n", "1 1 0:1 /a /m rw - cgroup c rw,pids\n")
	f.Fuzz(func(t *testing.T, membership, mounts string) {
		h := find([]byte(membership), []byte(mounts))
		if (h.v2 == "") != (h.v2top == "") {
			t.Errorf("%+v", h)
		}
	})
}

// unified makes a directory tree that looks like a version 2 hierarchy.
func unified(t *testing.T, groups map[string][2]string) string {
	t.Helper()
	top := t.TempDir()
	for g, files := range groups {
		dir := filepath.Join(top, g)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"cgroup.controllers": files[0], "cgroup.subtree_control": files[1], "cgroup.procs": "",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return top
}

// The nearest ancestor that hands down what is needed is taken.
func TestHandsDown(t *testing.T) {
	top := unified(t, map[string][2]string{
		".":         {"cpu memory pids", "cpu memory pids"},
		"user":      {"cpu memory pids", "memory pids"},
		"user/mine": {"memory pids", ""},
		"bare":      {"", ""},
	})
	host := func(own string) *Host { return &Host{v2: filepath.Join(top, own), v2top: top} }
	for _, c := range []struct {
		own  string
		need []Controller
		want string
	}{
		{"user/mine", []Controller{Pids, Memory}, "user/mine"}, // told to hand them down
		{"user", []Controller{Pids}, "user"},
		{"user", []Controller{CPU}, "user"},
		{"bare", []Controller{Pids}, "."},
	} {
		got, err := host(c.own).hands(c.need)
		if err != nil || got != filepath.Join(top, c.want) {
			t.Errorf("%s needs %v: %q, %v; want %q", c.own, c.need, got, err, c.want)
		}
	}
	told, err := os.ReadFile(filepath.Join(top, "user/mine/cgroup.subtree_control"))
	if err != nil || !strings.Contains(string(told), "+memory") {
		t.Errorf("the group was told %q, %v", told, err)
	}

	none := unified(t, map[string][2]string{".": {"io", "io"}, "a": {"io", ""}})
	h := &Host{v2: filepath.Join(none, "a"), v2top: none}
	if dir, err := h.hands([]Controller{Pids}); err == nil {
		t.Errorf("found %q for a controller that does not exist", dir)
	}
	places, missing := h.Places()
	if len(places) != 0 || len(missing) != 3 {
		t.Errorf("places %v, missing %v", places, missing)
	}
	g, missing, err := h.Create("x", Limits{Pids: 1, CPUs: 1}, nil)
	if g != nil || err != nil || !slices.Equal(slices.Sorted(maps.Keys(missing)), []Controller{CPU, Pids}) {
		t.Errorf("group %v, missing %v, %v", g, missing, err)
	}
}

// Where not all controllers are in one place, the later ones are given up.
func TestChoose(t *testing.T) {
	top := unified(t, map[string][2]string{".": {"cpu", "cpu"}, "a": {"memory pids", "memory pids"}})
	h := &Host{v2: filepath.Join(top, "a"), v2top: top}
	places, missing := h.choose("x", Limits{Pids: 1, MemoryBytes: 1 << 20, CPUs: 1})
	want := filepath.Join(top, "a", "x")
	if places[Pids].Dir != want || places[Memory].Dir != want || len(places) != 2 || missing[CPU] == nil {
		t.Errorf("places %v, missing %v", places, missing)
	}
}

func TestNames(t *testing.T) {
	h := &Host{}
	for _, name := range []string{"", ".", "..", ".x", "a/b", "a\x00", "a\n", strings.Repeat("x", MaxName+1)} {
		if _, _, err := h.Create(name, Limits{}, nil); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}

// A record that was tampered with leads to no other group.
func TestLeftoverRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, dirs := range [][]string{
		{"/sys/fs/cgroup/pids/other"}, {"relative/box"}, {"/sys/fs/cgroup/../cgroup/box"},
	} {
		if _, err := Leftover("box", dirs); err == nil {
			t.Errorf("%q was accepted", dirs)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "box"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Leftover("box", []string{filepath.Join(dir, "box")}); err == nil {
		t.Error("an ordinary directory was accepted")
	}
	g, err := Leftover("box", []string{"/sys/fs/cgroup/pids/none/box"})
	if err != nil || len(g.Dirs()) != 0 {
		t.Errorf("a group that is gone: %v, %v", g, err)
	}
}
