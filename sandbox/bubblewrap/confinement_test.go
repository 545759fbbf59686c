package bubblewrap

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// What a command finds, can do and cannot do by default. Every line of the script
// prints one fact.
func TestConfinement(t *testing.T) {
	r := newRig(t)
	t.Setenv("BUBBLEWRAP_TEST_SECRET", "of-the-host")
	sb := ensure(t, r.Backend, r.spec())
	for _, c := range []struct{ what, script, want string }{
		{"no host environment", `env | grep -c of-the-host`, "0"},
		{"working directory", `pwd`, "/workspace"},
		{"home can be written", `test -w "$HOME" && test "$HOME" != /workspace && echo yes`, "yes"},
		{"root is read-only", `touch /x 2>&1 | grep -c "Read-only"; touch /usr/x /etc/x /var/x 2>&1 | grep -c "Read-only"`, "1\n3"},
		{"scratch", `touch /tmp/a /var/tmp/a /run/a /dev/shm/a && echo yes`, "yes"},
		{"no setuid", `grep -c nosuid /proc/self/mountinfo | sed 's/^[1-9].*/some/'`, "some"},
		{"capabilities", `grep -E '^Cap' /proc/self/status | cut -f2 | sort -u`, "0000000000000000"},
		{"no new privileges, filter", `grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | cut -f2 | tr '\n' ' '`, "1 2 "},
		{"descriptors", `ls /proc/self/fd | tr '\n' ' '`, "0 1 2 3 "}, // 3 is the list's own
		{"process 1", `tr '\0' ' ' </proc/1/cmdline | cut -d' ' -f1`, helperFile},
		{"own processes only", `ls -d /proc/[0-9]* | wc -l | xargs test 12 -gt && echo few`, "few"},
		{"network", `ls /sys/class/net 2>/dev/null; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '`, "lo"},
		{"loopback", `grep -c . /proc/net/if_inet6 | sed 's/^[0-9]*$/up/'`, "up"},
		{"no terminal", `(: </dev/tty) 2>/dev/null || echo none`, "none"},
		{"host name", `cat /proc/sys/kernel/hostname`, string(sb.Info().ID)},
		{"names", `id -un 2>/dev/null | wc -w; getent passwd nobody | cut -d: -f1`, "1\nnobody"},
		{"temporary files are the user's own", `d=$(mktemp -d) && touch $d/f && rm -r $d && echo yes`, "yes"},
		{"devices", `ls /dev | tr '\n' ' '`, "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "},
		{"no new devices", `touch /dev/x 2>&1 | grep -c "Read-only"`, "1"},
		{"kernel settings", `(: >/proc/sys/kernel/core_pattern) 2>/dev/null || echo closed`, "closed"},
		{"nothing of the kernel to write", `find /proc -writable -type f -not -path '/proc/[0-9]*' -not -path '/proc/self*' -not -path '/proc/thread-self*' 2>/dev/null | grep -v -e /proc/pressure/ -e /proc/mtrr -e /proc/sys/net/ -e /proc/sys/user/ -e /proc/keys -e /proc/timer_list | wc -l`, "0"},
		{"what tells about the machine", `cat /proc/keys /proc/timer_list 2>/dev/null | wc -c`, "0"},
		{"namespaces", `unshare -U true 2>/dev/null || echo denied`, "denied"},
		{"helper", `(: >` + helperFile + `) 2>/dev/null || mv ` + filepath.Dir(helperFile) + ` /run/moved 2>/dev/null || rm -f ` + helperFile + ` 2>/dev/null || echo kept`, "kept"},
		{"process 1 cannot be killed", `for s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 19 20 21 22 23 24 25 26 27 28 29 30 31; do kill -$s 1 2>/dev/null; done; test -d /proc/1 && echo alive`, "alive"},
		{"process 1 tells nothing", `cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; readlink /proc/1/fd/* /proc/1/exe 2>/dev/null | wc -l`, "0\n0"},
	} {
		if got := strings.TrimSuffix(sh(t, sb, c.script+" || true"), "\n"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	if sb.Info().State != sandbox.StateRunning {
		t.Errorf("state %s: %s", sb.Info().State, sb.Info().Detail)
	}
}

// Files of this machine that hold secrets do not exist inside.
func TestNoSecrets(t *testing.T) {
	r := newRig(t)
	sb := ensure(t, r.Backend, r.spec())
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/environment", "/etc/profile",
		"/etc/machine-id", "/etc/gitconfig", "/etc/npmrc", "/etc/fstab", "/etc/crontab", "/root", "/home", "/var/lib", "/var/log",
		"/opt", "/srv", "/mnt", "/media", "/boot", "/sys", r.state, r.dir, home, "/run/docker.sock", "/var/run/docker.sock",
	} {
		if out := sh(t, sb, `ls -d '`+path+`' 2>/dev/null || echo absent`); strings.TrimSpace(out) != "absent" {
			t.Errorf("%s is there", path)
		}
	}
	if out := sh(t, sb, "cat /etc/hosts /etc/hostname /etc/passwd /etc/group"); strings.Contains(out, home) {
		t.Errorf("files of /etc tell about this machine:\n%s", out)
	}
	if _, err := os.Stat("/etc/resolv.conf"); err == nil {
		if out := sh(t, sb, "ls /etc/resolv.conf 2>/dev/null || echo absent"); strings.TrimSpace(out) != "absent" {
			t.Error("without a network there is a resolv.conf")
		}
	}
}

// What the bridge reads and writes is what commands read and write.
func TestOneTable(t *testing.T) {
	r := newRig(t)
	sb := ensure(t, r.Backend, r.spec())
	b, err := sb.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	sh(t, sb, "echo from-exec >/workspace/a; echo from-exec >/tmp/a; mkdir /run/d; echo from-exec >/run/d/a")
	for _, p := range []string{"a", "/workspace/a", "/tmp/a", "/run/d/a"} {
		if data, err := b.ReadFile(t.Context(), p); err != nil || string(data) != "from-exec\n" {
			t.Errorf("%s: %q, %v", p, data, err)
		}
	}
	for _, p := range []string{"b", "/tmp/b", "/var/tmp/b"} {
		if err := b.WriteFile(t.Context(), p, []byte("from-bridge\n")); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if out := sh(t, sb, "cat b /tmp/b /var/tmp/b"); out != strings.Repeat("from-bridge\n", 3) {
		t.Errorf("commands read %q", out)
	}
	if data, err := os.ReadFile(filepath.Join(r.ws, "b")); err != nil || string(data) != "from-bridge\n" {
		t.Errorf("on this machine: %q, %v", data, err)
	}
	if data, err := b.ReadFile(t.Context(), "/etc/nsswitch.conf"); err != nil || len(data) == 0 {
		t.Errorf("a file of the system: %q, %v", data, err)
	}
	if err := b.WriteFile(t.Context(), "/etc/x", nil); !errors.Is(err, fsbridge.ErrReadOnly) {
		t.Errorf("writing to the system: %v", err)
	}
	if ws, ok := fsbridge.Mounts(b).Workspace(); !ok || ws.Path != "/workspace" || ws.HostPath != r.ws {
		t.Errorf("workspace mount %+v", ws)
	}
}

// The workspace read-only, and not at all.
func TestAccess(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.ws, "f"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Run("ro", func(t *testing.T) {
		sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.Access = sandbox.AccessReadOnly }))
		if out := sh(t, sb, `pwd; cat f; touch g 2>/dev/null || echo refused; rm -f f 2>/dev/null || echo refused; ls -d /workspace 2>/dev/null || echo absent`); out != "/agent\nmine\nrefused\nrefused\nabsent\n" {
			t.Errorf("inside: %q", out)
		}
		b, err := sb.Bridge(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := b.ReadFile(t.Context(), "f"); err != nil || string(data) != "mine\n" {
			t.Errorf("bridge reads %q, %v", data, err)
		}
		if err := b.WriteFile(t.Context(), "f", nil); !errors.Is(err, fsbridge.ErrReadOnly) {
			t.Errorf("bridge writes: %v", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		spec := r.spec(func(c *sandbox.Config) { c.Access = sandbox.AccessNone })
		sb := ensure(t, r.Backend, spec)
		if out := sh(t, sb, `pwd; ls; echo scratch >s; cat s`); out != "/workspace\nscratch\n" {
			t.Errorf("inside: %q", out)
		}
		if _, err := os.Stat(filepath.Join(r.ws, "s")); err == nil {
			t.Error("the file is in the workspace")
		}
		// The scratch directory stays with the sandbox and goes with it.
		if err := sb.Close(); err != nil {
			t.Fatal(err)
		}
		again := ensure(t, r.Backend, spec)
		if out := sh(t, again, `cat s`); out != "scratch\n" {
			t.Errorf("after a restart: %q", out)
		}
		ws, _ := again.Info().Mounts.Workspace()
		if err := r.Remove(t.Context(), again.Info().ID); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(ws.HostPath); err == nil {
			t.Errorf("%s is left", ws.HostPath)
		}
	})
	data, err := os.ReadFile(filepath.Join(r.ws, "f"))
	if err != nil || string(data) != "mine\n" {
		t.Errorf("the workspace was changed: %q, %v", data, err)
	}
}

// Network "host" shares the network, and says so beforehand.
func TestNetworkHost(t *testing.T) {
	r := newRig(t)
	_, err := r.Ensure(t.Context(), r.spec(func(c *sandbox.Config) { c.Network = "host" }))
	problem(t, err, "network", sandbox.ErrRefused)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("reached\n"))
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	script := `exec 2>/dev/null; exec 3<>/dev/tcp/127.0.0.1/` + port + ` && cat <&3 || echo no way`
	run := func(sb sandbox.Sandbox) string {
		return strings.TrimSpace(sh(t, sb, `command -v bash >/dev/null && bash -c '`+script+`' || echo no bash`))
	}
	host := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.Network, c.AllowDangerous = "host", []string{"network"} }))
	if out := run(host); out != "reached" && out != "no bash" {
		t.Errorf("with the host's network: %q", out)
	}
	if _, err := os.Stat("/etc/resolv.conf"); err == nil {
		sh(t, host, "test -e /etc/resolv.conf")
	}
	none := ensure(t, r.Backend, r.spec())
	if out := run(none); out != "no way" && out != "no bash" {
		t.Errorf("without a network: %q", out)
	}
	if !strings.Contains(r.log.String(), "dangerous setting permitted") {
		t.Error("the permission was not logged")
	}
}

// A writable root, other scratch space, and sizes that are kept.
func TestRootAndTmpfs(t *testing.T) {
	r := newRig(t)
	sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) {
		c.ReadOnlyRoot = false
		c.Tmpfs = []sandbox.Tmpfs{{Path: "/data/scratch", SizeBytes: 1 << 20}, {Path: "/workspace/build", SizeBytes: 1 << 20}}
	}))
	if out := sh(t, sb, `touch /x && mkdir -p /srv/y && test -w "$HOME" && echo yes; touch /usr/x 2>&1 | grep -c Read-only`); out != "yes\n1\n" {
		t.Errorf("writable root: %q", out)
	}
	out := sh(t, sb, `for d in /data/scratch build; do dd if=/dev/zero of=$d/f bs=64k count=64 2>&1 | grep -c "No space left"; done; ls build`)
	if out != "1\n1\nf\n" {
		t.Errorf("sizes: %q", out)
	}
	b, err := sb.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFile(t.Context(), "/data/scratch/g", make([]byte, 2<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the bridge wrote into a full directory: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(r.ws, "build")); err != nil || len(entries) != 0 {
		t.Errorf("the mount point on this machine holds %v, %v", entries, err)
	}
}

// The configured environment, below the command's.
func TestEnvironment(t *testing.T) {
	r := newRig(t)
	sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) {
		c.Env = map[string]string{"ONE": "config", "TWO": "config", "PATH": "/bin:/usr/bin"}
	}))
	result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", `echo "$ONE $TWO $PATH $LANG"`}},
		sandbox.Env{"TWO": "command"}, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(result.Stdout.Head); got != "config command /bin:/usr/bin C.UTF-8\n" {
		t.Errorf("got %q", got)
	}
	record, err := os.ReadFile(filepath.Join(r.state, "sandboxes", string(sb.Info().ID), "record.json"))
	if err != nil || strings.Contains(string(record), `"config"`+"\n") || strings.Contains(string(record), `"ONE": "config"`) {
		t.Errorf("the record holds a value: %s, %v", record, err)
	}
}
