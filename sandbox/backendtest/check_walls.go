package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/workberth/workberth/sandbox"
)

func wallChecks() []check {
	return []check{
		{name: "dangerous", rows: []string{"C017"}, run: wallsDangerous},
		{name: "rights", needs: confined, run: wallsRights},
		{name: "system-calls", needs: confined, run: wallsSystemCalls},
		{name: "files", needs: confined, run: wallsFiles},
		{name: "read-only", needs: withReadOnlyRoot, run: wallsReadOnly},
		{name: "processes", needs: confined, run: wallsProcesses},
		{name: "network", needs: confined, run: wallsNetwork},
		{name: "helper", needs: confined, run: wallsHelper},
	}
}

func withReadOnlyRoot(f sandbox.Features) string {
	return unless(f.ReadOnlyRoot && f.Confined, "a read-only root")
}

// wallsDangerous: a dangerous setting is refused before anything is made, naming the field.
func wallsDangerous(k *kit) {
	before := k.stateSnapshot()
	link := filepath.Join(k.dir, "link")
	k.must(os.Symlink("/etc", link))
	for name, tc := range map[string]struct {
		field string
		set   func(*sandbox.Spec)
	}{
		"network":      {"network", func(s *sandbox.Spec) { s.Config.Network = "HOST" }},
		"namespace":    {"network", func(s *sandbox.Spec) { s.Config.Network = "ns:/proc/1/ns/net" }},
		"root":         {"binds", func(s *sandbox.Spec) { s.Config.Binds = []sandbox.Bind{{Source: "/", Target: "/data"}} }},
		"etc by link":  {"binds", func(s *sandbox.Spec) { s.Config.Binds = []sandbox.Bind{{Source: link, Target: "/data"}} }},
		"own state":    {"binds", func(s *sandbox.Spec) { s.Config.Binds = []sandbox.Bind{{Source: k.state, Target: "/data"}} }},
		"over proc":    {"binds", func(s *sandbox.Spec) { s.Config.Binds = []sandbox.Bind{{Source: k.ws, Target: "/x/../proc"}} }},
		"unconfined":   {"seccompProfile", func(s *sandbox.Spec) { s.Config.SeccompProfile = "Unconfined" }},
		"privileged":   {"privileged", func(s *sandbox.Spec) { s.Config.Privileged = true }},
		"pid":          {"pidMode", func(s *sandbox.Spec) { s.Config.PidMode = "host" }},
		"capabilities": {"capAdd", func(s *sandbox.Spec) { s.Config.CapAdd = []string{"ALL"} }},
		"no session":   {"session", func(s *sandbox.Spec) { s.Session = "" }},
		"bad limit":    {"limits", func(s *sandbox.Spec) { s.Config.Limits.Pids = -1 }},
		"bad variable": {"env", func(s *sandbox.Spec) { s.Config.Env = map[string]string{"A=B": secretValue} }},
	} {
		spec := k.spec(tc.set, func(s *sandbox.Spec) { s.Config.SetupCommand = "echo ran > ran.here" })
		x, err := k.tryEnsure(k.backend, spec)
		var p *sandbox.Problem
		switch {
		case x != nil || !errors.Is(err, sandbox.ErrRefused) || !errors.As(err, &p):
			k.Errorf("%s: %v", name, err)
		case p.Field != tc.field || p.Rule == "" || p.Remedy == "":
			k.Errorf("%s: %+v, want field %q", name, p, tc.field)
		case strings.Contains(err.Error(), secretValue):
			k.Errorf("%s: the error shows a value", name)
		}
	}
	k.nothingRan()
	k.wantStateSnapshot(before)
}

// wallsRights: no capability, no way to new ones, a filter on system calls, namespaces of
// its own.
func wallsRights(k *kit) {
	x := k.ensure()
	facts := decode[map[string]string](k, x.run("self"))
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(facts[set], "0") != "" {
			k.Errorf("%s %s", set, facts[set])
		}
	}
	if facts["NoNewPrivs"] != "1" {
		k.Errorf("NoNewPrivs %s", facts["NoNewPrivs"])
	}
	if k.features.Seccomp && facts["Seccomp"] != "2" {
		k.Errorf("Seccomp %s", facts["Seccomp"])
	}
	spaces := []string{"mnt", "net", "ipc", "uts"}
	if k.features.ProcessNamespace {
		spaces = append(spaces, "pid")
	}
	for _, ns := range spaces {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		if err == nil && (facts["ns."+ns] == ours || facts["ns."+ns] == "") {
			k.Errorf("the %s namespace is %q, this process has %q", ns, facts["ns."+ns], ours)
		}
	}
	if host, err := os.Hostname(); err == nil && facts["hostname"] == host {
		k.Errorf("the host name is this machine's: %q", host)
	}
}

// wallsSystemCalls: what no command needs is refused.
func wallsSystemCalls(k *kit) {
	x := k.ensure()
	for _, name := range []string{"mount", "unshare", "chroot", "mknod", "bpf", "sethostname", "ptrace"} {
		// Refused for lack of the right, not for bad arguments.
		if got := x.run("syscall", name); got != "EPERM" && got != "EACCES" && got != "ENOSYS" {
			k.Errorf("%s is permitted: %s", name, got)
		}
	}
	if k.features.Seccomp {
		if got := x.run("syscall", "unshare-user"); got == "ok" {
			k.Error("a user namespace can be made")
		}
	}
}

// wallsFiles: nothing of this machine's that is not the system's is there.
func wallsFiles(k *kit) {
	secret := filepath.Join(k.dir, "secret-"+k.word)
	home := filepath.Join(k.dir, "home")
	key := filepath.Join(home, ".ssh", "id_suite")
	k.must(errors.Join(os.WriteFile(secret, []byte(secretValue), 0o644), os.MkdirAll(filepath.Dir(key), 0o755), os.WriteFile(key, []byte(secretValue), 0o644)))
	k.Setenv("HOME", home)
	x := k.ensure()
	args := []string{"probe"}
	what := []string{
		"read", secret, "read", key, "list", home, "list", k.dir, "list", k.ws, "list", k.state, "read", k.prog,
		"read", "/etc/shadow", "read", "/proc/kcore", "read", "/dev/mem", "read", "/dev/kmsg", "read", "/proc/1/root" + secret,
		"write", "/proc/sysrq-trigger", "write", "/proc/sys/kernel/hostname", "write", "/sys/kernel/uevent_helper", "write", "/proc/sys/kernel/core_pattern",
		"read", "/var/run/docker.sock", "read", "/run/docker.sock", "list", "/run/user",
	}
	if real, err := os.UserHomeDir(); err == nil && real != home {
		what = append(what, "read", filepath.Join(real, ".ssh/id_rsa"))
	}
	for i, got := range decode[[]string](k, x.run(append(args, what...)...)) {
		if got == "ok" {
			k.Errorf("%s %s is permitted", what[2*i], what[2*i+1])
		}
	}
	for _, p := range []string{"/dev/null", "/dev/zero", "/dev/urandom"} {
		if got := decode[[]string](k, x.run("probe", "read", p))[0]; got != "ok" {
			k.Errorf("%s: %s", p, got)
		}
	}
	if names, err := filepath.Glob("/dev/sd*"); err == nil {
		for _, disk := range names {
			if got := decode[[]string](k, x.run("probe", "read", disk))[0]; got == "ok" {
				k.Errorf("the disk %s can be read", disk)
			}
		}
	}
	if data, err := json.Marshal(x.Info()); err != nil || strings.Contains(string(data), secretValue) {
		k.Errorf("the description shows a secret (%v)", err)
	}
}

// wallsReadOnly: outside workspace, binds and scratch space nothing can be changed.
func wallsReadOnly(k *kit) {
	x := k.ensure()
	args := []string{"probe"}
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/bin", "/lib", "/etc", "/opt", "/var", "/root", "/home", "/dev", "/proc", "/sys", "/opt/berth-test", sandbox.HelperPath} {
		args = append(args, "write", filepath.Join(dir, k.word), "mkdir", filepath.Join(dir, k.word+"-dir"))
	}
	args = append(args, "write", x.prog, "write", "/etc/passwd", "write", "/etc/resolv.conf", "write", "/etc/hosts")
	for i, got := range decode[[]string](k, x.run(args...)) {
		if got == "ok" {
			k.Errorf("%s %s is permitted", args[1+2*i], args[2+2*i])
		}
	}
	for _, t := range sandbox.DefaultConfig().Tmpfs {
		p := filepath.Join(t.Path, k.word)
		if got := decode[[]string](k, x.run("probe", "write", p))[0]; got != "ok" {
			k.Errorf("scratch space %s: %s", t.Path, got)
		}
	}
}

// wallsProcesses: no process of this machine can be seen, signalled or read.
func wallsProcesses(k *kit) {
	foreign := exec.Command(k.prog, "wait", filepath.Join(k.ws, witnessDir, k.word+"-foreign"))
	foreign.Env = []string{"BERTH_SUITE_CANARY=" + secretValue}
	k.must(foreign.Start())
	defer func() {
		_ = foreign.Process.Kill()
		_ = foreign.Wait()
	}()
	k.eventually("the foreign process runs", func() bool { return len(k.alive("foreign")) == 1 })
	x := k.ensure()
	x.start("wait", x.witness("w")).ready()
	if k.features.ProcessNamespace {
		inside := map[int]bool{}
		for _, p := range x.processes() {
			inside[p.Pid] = true
			if line := strings.Join(p.Args, " "); strings.Contains(line, os.Args[0]) {
				k.Errorf("this process can be seen: %s", line)
			}
		}
		for _, pid := range []int{os.Getpid(), foreign.Process.Pid} {
			if got := x.run("kill", fmt.Sprint(pid), "0"); got == "ok" && !inside[pid] {
				k.Errorf("process %d of this machine can be signalled", pid)
			}
		}
	}
	var readable, found int
	if _, err := fmt.Sscan(x.run("environ", "BERTH_SUITE_CANARY="+secretValue), &readable, &found); err != nil || found > 0 {
		k.Errorf("the environment of a process of this machine can be read, %d times (%v)", found, err)
	}
}

// wallsNetwork: with network none there is nobody to talk to.
func wallsNetwork(k *kit) {
	x := k.ensure()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	k.must(err)
	defer tcp.Close()
	abstract := "@berth-suite-" + k.word
	hidden, err := net.Listen("unix", abstract)
	k.must(err)
	defer hidden.Close()
	type target struct{ network, address string }
	targets := []target{
		{"tcp", tcp.Addr().String()},
		{"unix", abstract},
		{"tcp", "192.0.2.1:9"},
	}
	if addrs, err := net.InterfaceAddrs(); err == nil {
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
				targets = append(targets, target{"tcp", net.JoinHostPort(ip.IP.String(), port)})
			}
		}
	}
	for _, to := range targets {
		if got := x.run("connect", to.network, to.address); !strings.HasPrefix(got, "no: ") {
			k.Errorf("%s %s: %s", to.network, to.address, got)
		}
	}
}

// process is a process as seen from inside.
type process struct {
	Pid  int
	Args []string
}

func (x *box) processes() []process { return decode[[]process](x.k, x.run("procs")) }

// helperPid is the helper's process: process 1, or the one that an init as process 1 has started.
func (x *box) helperPid() int {
	for _, p := range x.processes() {
		served := func(arg string) bool { return strings.HasPrefix(arg, "--mount=") }
		if p.Pid > 1 && len(p.Args) > 0 && strings.HasPrefix(filepath.Base(p.Args[0]), "berth-guest") && slices.ContainsFunc(p.Args, served) {
			return p.Pid
		}
	}
	return 1
}

// wallsHelper: what serves the sandbox from inside cannot be traced or read by a command.
func wallsHelper(k *kit) {
	x := k.ensure()
	if !k.features.ProcessNamespace {
		k.skip("the helper is a process of this machine")
	}
	helper := x.helperPid()
	dir := fmt.Sprintf("/proc/%d/", helper)
	what := []string{"read", dir + "mem", "read", dir + "environ", "list", dir + "fd", "list", dir + "root", "list", dir + "cwd"}
	for i, got := range decode[[]string](k, x.run(append([]string{"probe"}, what...)...)) {
		if got == "ok" {
			k.Errorf("%s %s is permitted", what[2*i], what[2*i+1])
		}
	}
	// A command cannot end it; if it can, the sandbox ends with it, and truthfully.
	s := x.start("wait", x.witness("w")).ready()
	spec, err := x.BuildExecSpec(k.ctx, x.role("kill", fmt.Sprint(helper), "9"), nil)
	k.must(err)
	got, status, err := x.spawn(spec)
	k.Logf("kill of the helper, process %d: %q, %+v, %v", helper, got, status, err)
	if err == nil && !status.Unknown {
		x.works()
		s.cancel()
		s.ended()
		return
	}
	select {
	case <-x.Done():
		k.eventually("nothing is left", func() bool { return len(k.alive("w")) == 0 })
	case <-k.ctx.Done():
		k.Error("the helper was killed, and the sandbox has not ended")
	}
}
