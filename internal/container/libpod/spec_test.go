package libpod

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/container"
)

// hardened is a container with most of what can be asked for.
func hardened() container.Spec {
	return container.Spec{
		Name: "n", Image: "img", Labels: map[string]string{"a": "b"}, Argv: []string{"/bin/x", "y z", ""},
		Env: []string{"A=1", "B=x=y", "C=", "A=2"}, User: "1:2", Workdir: "/w", Hostname: "h", ReadOnlyRoot: true, Network: "none",
		Mounts: []container.Mount{
			{Target: "/ro", Source: "/src", ReadOnly: true}, {Target: "/rw", Source: "/src2", Relabel: true}, {Target: "/own", Source: "/src3", Relabel: true, Private: true},
			{Target: "/tmp", Size: 1024, Mode: 0o1777}, {Target: "/bare", ReadOnly: true},
		},
		CapAdd: []string{"NET_ADMIN"},
		Limits: container.Limits{Pids: 5, MemoryBytes: 1 << 20, CPUs: 1.5, OpenFiles: 100, FileSizeBytes: 200},
	}
}

// TestGenerator compares with everything that is sent.
func TestGenerator(t *testing.T) {
	g, err := generator(hardened(), surroundings{peer: peerLimits{openFiles: 11, processes: 22}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
		"name": "n", "image": "img", "entrypoint": ["/bin/x", "y z", ""], "command": [], "labels": {"a": "b"},
		"env": {"A": "2", "B": "x=y", "C": ""}, "env_host": false, "httpproxy": false, "terminal": false, "stdin": false,
		"log_configuration": {"driver": "k8s-file", "size": 4194304}, "restart_policy": "no", "systemd": "false", "sdnotifyMode": "ignore",
		"init": true, "work_dir": "/w", "hostname": "h", "user": "1:2",
		"mounts": [
			{"destination": "/ro", "type": "bind", "source": "/src", "options": ["bind", "ro", "rprivate"]},
			{"destination": "/rw", "type": "bind", "source": "/src2", "options": ["rbind", "rw", "rprivate", "z"]},
			{"destination": "/own", "type": "bind", "source": "/src3", "options": ["rbind", "rw", "rprivate", "Z"]},
			{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["rw", "nosuid", "nodev", "exec", "notmpcopyup", "size=1024", "mode=1777"]},
			{"destination": "/bare", "type": "tmpfs", "source": "tmpfs", "options": ["ro", "nosuid", "nodev", "exec", "notmpcopyup"]},
			{"destination": "/dev/shm", "type": "tmpfs", "source": "tmpfs", "options": ["rw", "nosuid", "nodev", "noexec", "notmpcopyup", "size=67108864", "mode=1777"]}
		],
		"image_volume_mode": "ignore", "read_only_filesystem": true, "read_write_tmpfs": false,
		"pidns": {"nsmode": "private"}, "utsns": {"nsmode": "private"}, "ipcns": {"nsmode": "private"}, "userns": {"nsmode": "host"},
		"cgroupns": {"nsmode": "private"}, "netns": {"nsmode": "none"},
		"cap_add": ["NET_ADMIN"], "cap_drop": ["ALL"], "no_new_privileges": true,
		"resource_limits": {"pids": {"limit": 5}, "memory": {"limit": 1048576, "swap": 1048576}, "cpu": {"quota": 150000, "period": 100000}},
		"r_limits": [{"type": "fsize", "hard": 200, "soft": 200}, {"type": "nofile", "hard": 100, "soft": 100}, {"type": "nproc", "hard": 22, "soft": 22}],
		"healthconfig": {"Test": ["NONE"]}
	}`
	var got, expected map[string]any
	if err := errors.Join(json.Unmarshal(raw, &got), json.Unmarshal([]byte(want), &expected)); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !reflect.DeepEqual(got[key], expected[key]) {
			t.Errorf("%s: %v, want %v", key, got[key], expected[key])
		}
		delete(expected, key)
	}
	if len(expected) > 0 {
		t.Errorf("not sent: %v", expected)
	}
}

func TestGeneratorVariants(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *container.Spec)
		around surroundings
		want   func(g *SpecGenerator) bool
	}{
		{"default network", func(s *container.Spec) { s.Network = "" }, surroundings{}, func(g *SpecGenerator) bool { return g.NetNS.NSMode == "none" }},
		{"usual network", func(s *container.Spec) { s.Network = "bridge" }, surroundings{network: "pasta"}, func(g *SpecGenerator) bool { return g.NetNS.NSMode == "pasta" && g.Networks == nil }},
		{"host network", func(s *container.Spec) { s.Network = "host" }, surroundings{}, func(g *SpecGenerator) bool { return g.NetNS.NSMode == "host" }},
		{"named network", func(s *container.Spec) { s.Network = "mine" }, surroundings{}, func(g *SpecGenerator) bool { _, ok := g.Networks["mine"]; return ok && g.NetNS.NSMode == "bridge" }},
		{"machine's processes", func(s *container.Spec) { s.PidMode = "host" }, surroundings{}, func(g *SpecGenerator) bool { return g.PidNS.NSMode == "host" && !g.Init }},
		{"kept user", func(s *container.Spec) { s.KeepID = true }, surroundings{}, func(g *SpecGenerator) bool { return g.UserNS.NSMode == "keep-id" }},
		{"privileged", func(s *container.Spec) { s.Privileged = true }, surroundings{}, func(g *SpecGenerator) bool { return g.Privileged && g.CapDrop == nil && g.CapAdd == nil }},
		{"no limits", func(s *container.Spec) { s.Limits = container.Limits{} }, surroundings{peer: peerLimits{1, 2}}, func(g *SpecGenerator) bool {
			return g.Rlimits == nil && g.ResourceLimits == LinuxResources{Pids: LinuxPids{Limit: -1}}
		}},
		{"bound engine", func(s *container.Spec) { s.Limits = container.Limits{} }, surroundings{peer: peerLimits{1, 2}, bound: true}, func(g *SpecGenerator) bool {
			return slices.Equal(g.Rlimits, []POSIXRlimit{{"nofile", 1, 1}, {"nproc", 2, 2}})
		}},
		{"one limit", func(s *container.Spec) { s.Limits.OpenFiles = 0 }, surroundings{peer: peerLimits{openFiles: 7}}, func(g *SpecGenerator) bool {
			return slices.Equal(g.Rlimits, []POSIXRlimit{{"fsize", 200, 200}, {"nofile", 7, 7}})
		}},
		{"tiny share", func(s *container.Spec) { s.Limits.CPUs = 0.001 }, surroundings{}, func(g *SpecGenerator) bool { return g.ResourceLimits.CPU.Quota == 1000 }},
		{"seccomp", func(*container.Spec) {}, surroundings{seccomp: "/x"}, func(g *SpecGenerator) bool { return g.SeccompProfilePath == "/x" }},
		{"all GPUs", func(s *container.Spec) { s.GPUs = "all" }, surroundings{}, func(g *SpecGenerator) bool { return slices.Equal(g.Devices, []LinuxDevice{{"nvidia.com/gpu=all"}}) }},
		{"two GPUs", func(s *container.Spec) { s.GPUs = "2" }, surroundings{}, func(g *SpecGenerator) bool {
			return slices.Equal(g.Devices, []LinuxDevice{{"nvidia.com/gpu=0"}, {"nvidia.com/gpu=1"}})
		}},
		{"writable root", func(s *container.Spec) { s.ReadOnlyRoot = false }, surroundings{}, func(g *SpecGenerator) bool { return len(g.Mounts) == 5 && !g.ReadOnlyFilesystem }},
		{"own shared memory", func(s *container.Spec) { s.Mounts = []container.Mount{{Target: "/dev/shm"}} }, surroundings{}, func(g *SpecGenerator) bool { return len(g.Mounts) == 1 }},
	} {
		s := hardened()
		tc.change(&s)
		g, err := generator(s, tc.around)
		if err != nil || !tc.want(g) {
			t.Errorf("%s: %+v, %v", tc.name, g, err)
		}
	}
	for name, change := range map[string]func(s *container.Spec){
		"no command":     func(s *container.Spec) { s.Argv = nil },
		"empty command":  func(s *container.Spec) { s.Argv = []string{""} },
		"no value":       func(s *container.Spec) { s.Env = []string{"A"} },
		"no name":        func(s *container.Spec) { s.Env = []string{"=A"} },
		"odd processes":  func(s *container.Spec) { s.PidMode = "container:x" },
		"no GPUs":        func(s *container.Spec) { s.GPUs = "0" },
		"too many GPUs":  func(s *container.Spec) { s.GPUs = "100000000" },
		"device as GPUs": func(s *container.Spec) { s.GPUs = "/dev/sda" },
	} {
		s := hardened()
		change(&s)
		if g, err := generator(s, surroundings{}); err == nil {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// TestCreate looks at what is sent, and that a profile is there while the engine reads it and gone
// afterwards.
func TestCreate(t *testing.T) {
	shared := t.TempDir()
	var sent SpecGenerator
	var profile string
	answer := say(201, `{"Id":"abc","Warnings":["w"]}`)
	c := serve(t, map[string]http.HandlerFunc{
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			sent = SpecGenerator{}
			if err := json.Unmarshal(raw, &sent); err != nil || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v", raw, err)
			}
			content, _ := os.ReadFile(sent.SeccompProfilePath)
			profile = string(content)
			answer(w, r)
		},
		"GET /info": say(200, `{"host":{"security":{"rootless":true},"rootlessNetworkCmd":"pasta"}}`),
	})
	c.shared = shared
	s := hardened()
	text := `{"defaultAction":"SCMP_ACT_ALLOW"}`
	s.Seccomp, s.Network = &text, "bridge"
	made, err := c.Create(t.Context(), s)
	if err != nil || made.ID != "abc" || !slices.Equal(made.Warnings, []string{"w"}) {
		t.Errorf("Create = %+v, %v", made, err)
	}
	if profile != text || filepath.Dir(filepath.Dir(sent.SeccompProfilePath)) != shared || sent.NetNS.NSMode != "pasta" {
		t.Errorf("sent %+v with the profile %q", sent, profile)
	}
	none := ""
	s.Seccomp = &none
	if _, err := c.Create(t.Context(), s); err != nil || sent.SeccompProfilePath != unconfined {
		t.Errorf("without a profile: %q, %v", sent.SeccompProfilePath, err)
	}
	s.Seccomp = nil
	if _, err := c.Create(t.Context(), s); err != nil || sent.SeccompProfilePath != "" {
		t.Errorf("with the engine's profile: %q, %v", sent.SeccompProfilePath, err)
	}
	s.Seccomp = &text
	for _, tc := range []struct {
		status int
		body   string
		kind   error
		says   string
	}{
		{500, `{"cause":"that name is already in use","message":"creating container storage: the container name \"n\" is already in use by abc. You have to remove that container to be able to reuse that name: that name is already in use"}`, container.ErrConflict, `"n" is already in use`},
		{409, `{"message":"conflict"}`, container.ErrConflict, "conflict"},
		{404, `{"message":"no such image"}`, container.ErrNotFound, "no such image"},
		{500, `{"cause":"image not known","message":"img: image not known"}`, container.ErrNotFound, "img: image not known"},
		{500, `{"message":"container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or directory"}`, nil, "install catatonit"},
		{404, `{"message":"unable to find network with name or ID x: network not found"}`, nil, "network not found"},
		{500, `{"message":"statfs /src: no such file or directory"}`, nil, "statfs /src"},
		{201, `{"Id":""}`, nil, "makes no sense"},
	} {
		answer = say(tc.status, tc.body)
		_, err := c.Create(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), tc.says) || tc.kind != nil && !errors.Is(err, tc.kind) ||
			tc.kind == nil && (errors.Is(err, container.ErrNotFound) || errors.Is(err, container.ErrConflict)) {
			t.Errorf("%s: %v", tc.body, err)
		}
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestUsualNetwork(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "bridge", `{"host":{"rootlessNetworkCmd":"pasta"}}`: "bridge",
		`{"host":{"security":{"rootless":true}}}`:                              "slirp4netns",
		`{"host":{"security":{"rootless":true},"rootlessNetworkCmd":"pasta"}}`: "pasta",
	} {
		var info Info
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			t.Fatal(err)
		}
		if got := usualNetwork(&info); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestPeerLimits(t *testing.T) {
	text := `Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             1000                 95000                processes
Max open files            1024                 unlimited            files
Max pending signals       95000                95001                signals
`
	if got := parseLimits(text); got != (peerLimits{processes: 95000}) {
		t.Errorf("parseLimits = %+v", got)
	}
	for _, text := range []string{"", "Max processes", "Max processes \n", "Max processes x y\nMax open files 1"} {
		if got := parseLimits(text); got != (peerLimits{}) {
			t.Errorf("parseLimits(%q) = %+v", text, got)
		}
	}
	c := serve(t, map[string]http.HandlerFunc{"/": say(200, "[]")})
	if _, err := c.List(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Skip("this system does not show limits")
	}
	if got := c.peer.Load(); got == nil || *got != parseLimits(string(own)) {
		t.Errorf("the engine, which is this process, has %+v", got)
	}
}
