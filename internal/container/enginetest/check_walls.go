package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/workberth/workberth/internal/container"
)

// writeEverywhere tries to write where programs usually can, and names the places where it worked.
const writeEverywhere = `for d in / /open /bin /etc /run /var /var/tmp /home /bound /mnt /covered; do
	touch $d/written 2>/dev/null && echo $d
done; true`

func readOnlyRoot(k *kit) {
	for _, user := range []string{"1234:2345", "0:0"} {
		s := k.spec(writeEverywhere)
		s.Image, s.User = k.rich, user
		if got := k.mustRun(s); got != "" {
			k.Errorf("user %s can write in %q", user, strings.Fields(got))
		}
	}
	if got := k.mustRun(k.spec("echo shared >/dev/shm/x; cat /dev/shm/x")); got != "shared" {
		k.Errorf("memory cannot be shared: %q", got)
	}
	// What else the engine mounts: nothing that holds files and can be written to.
	usual := []string{"/tmp", "/dev", "/dev/shm", "/dev/pts", "/dev/mqueue", "/proc", "/sys", "/sys/fs/cgroup"}
	table := k.mustRun(k.spec("cat /proc/mounts"))
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			k.Fatalf("/proc/mounts has %q", line)
		}
		target, options := fields[1], strings.Split(fields[3], ",")
		if slices.Contains(options, "rw") && !slices.Contains(usual, target) && fields[2] == "tmpfs" && !masked(target) {
			info := k.mustRun(k.spec("touch " + target + "/written 2>/dev/null && echo yes; true"))
			if info != "" {
				k.Errorf("the engine has mounted %s, where everybody can write", target)
			}
		}
	}
	k.Logf("mounts:\n%s", table)
}

// masked reports places that engines hide under something else.
func masked(target string) bool {
	return strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/")
}

func writableRoot(k *kit) {
	s := k.spec("touch /open/written && cat /open/written && echo yes")
	s.ReadOnlyRoot = false
	if got := k.mustRun(s); got != "yes" {
		k.Errorf("output %q", got)
	}
}

func tmpfs(k *kit) {
	s := k.spec(`
cp /bin/busybox /tmp/true && /tmp/true && echo executed
stat -c %a /tmp /fresh /covered
ls -A /covered | wc -l
grep -e ' /tmp ' /proc/mounts
dd if=/dev/zero of=/tmp/big bs=1M count=40 2>/dev/null || echo full
stat -c %s /tmp/big`)
	s.Mounts = []container.Mount{
		{Target: "/tmp", Size: 8 << 20, Mode: 0o1777},
		{Target: "/covered", Size: 1 << 20, Mode: 0o705},
		{Target: "/fresh", Size: 1 << 20, Mode: 0o750},
	}
	lines := strings.Split(k.mustRun(s), "\n")
	if len(lines) != 8 {
		k.Fatalf("output %q", lines)
	}
	if lines[0] != "executed" {
		k.Errorf("a program in it cannot run: %q", lines[0])
	}
	// Some runtimes keep the mode of a directory that the image has at the place.
	if lines[1] != "1777" || lines[2] != "750" || lines[3] != "705" && lines[3] != "755" {
		k.Errorf("modes %q", lines[1:4])
	}
	if lines[4] != "0" {
		k.Errorf("it holds %s files of the image", lines[4])
	}
	options := strings.Split(strings.Fields(lines[5] + " - - - -")[3], ",")
	for _, want := range []string{"rw", "nosuid", "nodev"} {
		if !slices.Contains(options, want) {
			k.Errorf("options %q lack %s", options, want)
		}
	}
	if size, err := strconv.Atoi(lines[7]); lines[6] != "full" || err != nil || size > 8<<20 {
		k.Errorf("a file of 40 MiB went into 8 MiB: %q", lines[6:])
	}
}

func binds(k *kit) {
	dir := filepath.Join(k.shared, "binds")
	for _, sub := range []string{"ro", "rw", "ro/below"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			k.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, sub), 0o777); err != nil {
			k.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "ro/file"), []byte("content\n"), 0o644); err != nil {
		k.Fatal(err)
	}
	s := k.spec(`cat /in/ro/file; touch /in/ro/x 2>/dev/null && echo wrote ro
touch /in/ro/below/x 2>/dev/null && echo wrote below ro
echo made >/bound/made || exit 1; cat /bound/made`)
	s.Mounts = append(s.Mounts,
		container.Mount{Target: "/in/ro", Source: filepath.Join(dir, "ro"), ReadOnly: true},
		container.Mount{Target: "/bound", Source: filepath.Join(dir, "rw"), Relabel: true},
	)
	s.ReadOnlyRoot = false // the engine makes the place /in/ro
	if got := k.mustRun(s); got != "content\nmade" {
		k.Errorf("output %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "rw/made")); err != nil || string(got) != "made\n" {
		k.Errorf("outside: %q, %v", got, err)
	}
}

// mountsBelow covers what is mounted below a source: read-only means all of it.
func mountsBelow(k *kit) {
	dir := filepath.Join(k.shared, "below")
	inner := filepath.Join(dir, "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		k.Fatal(err)
	}
	if out, err := exec.CommandContext(k.ctx, "mount", "-t", "tmpfs", "-o", "mode=1777,size=1m", "enginetest", inner).CombinedOutput(); err != nil {
		k.Skipf("nothing can be mounted here: %v: %s", err, out)
	}
	k.Cleanup(func() {
		if out, err := exec.Command("umount", inner).CombinedOutput(); err != nil {
			k.Errorf("umount %s: %v: %s", inner, err, out)
		}
	})
	s := k.spec("touch /bound/inner/written 2>/dev/null && echo wrote; true")
	s.User = "0:0"
	s.Mounts = append(s.Mounts, container.Mount{Target: "/bound", Source: dir, ReadOnly: true})
	if got := k.mustRun(s); got != "" {
		k.Errorf("what is mounted below a read-only source can be written to")
	}
	s = k.spec("touch /bound/inner/another && echo wrote")
	s.Mounts = append(s.Mounts, container.Mount{Target: "/bound", Source: dir})
	if code, output := k.run(s); code != 0 || output != "wrote\n" {
		k.Logf("the engine does not see what this process mounts: %d, %q", code, output)
	}
}

func missingSource(k *kit) {
	source := filepath.Join(k.shared, "no", "such")
	s := k.spec("true")
	s.Mounts = append(s.Mounts, container.Mount{Target: "/bound", Source: source})
	made, err := k.engine.Create(k.ctx, s)
	if err == nil {
		defer k.remove(made.ID)
		err = k.engine.Start(k.ctx, made.ID)
	}
	if err == nil {
		k.Errorf("a container with a source that does not exist has started")
	} else if !strings.Contains(err.Error(), source) {
		k.Errorf("the error does not name the source: %v", err)
	}
	if _, err := os.Lstat(filepath.Dir(source)); err == nil {
		k.Errorf("the engine has made %s", source)
	}
}

// status reads values of /proc/self/status.
func (k *kit) status(s container.Spec) map[string]string {
	k.Helper()
	s.Argv = []string{"/bin/grep", "-e", "^Cap", "-e", "^NoNewPrivs", "-e", "^Seccomp:", "/proc/self/status"}
	values := map[string]string{}
	for line := range strings.Lines(k.mustRun(s)) {
		name, value, _ := strings.Cut(line, ":")
		values[name] = strings.TrimSpace(value)
	}
	return values
}

func capabilities(k *kit) {
	for _, user := range []string{"1234:2345", "0:0"} {
		s := k.spec("")
		s.User = user
		got := k.status(s)
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got[set] != "0000000000000000" {
				k.Errorf("user %s: %s is %s", user, set, got[set])
			}
		}
		if got["NoNewPrivs"] != "1" {
			k.Errorf("user %s: NoNewPrivs is %q", user, got["NoNewPrivs"])
		}
		if slices.Contains(k.about.Security, "seccomp") && got["Seccomp"] != "2" {
			k.Errorf("user %s: Seccomp is %q", user, got["Seccomp"])
		}
	}
}

func addedCapability(k *kit) {
	const netAdmin = "0000000000001000"
	s := k.spec("")
	s.User, s.CapAdd = "0:0", []string{"NET_ADMIN"}
	got := k.status(s)
	for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
		if got[set] != netAdmin {
			k.Errorf("%s is %s, want %s", set, got[set], netAdmin)
		}
	}
}

func seccomp(k *kit) {
	if !slices.Contains(k.about.Security, "seccomp") {
		k.Skip("this engine has no seccomp")
	}
	s := k.spec("")
	none := ""
	s.Seccomp = &none
	if got := k.status(s); got["Seccomp"] != "0" {
		k.Errorf("without a profile Seccomp is %q", got["Seccomp"])
	}
	s = k.spec("mkdir /tmp/x; touch /tmp/y && echo touched")
	profile := `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}`
	s.Seccomp = &profile
	id := k.start(s)
	k.wait(id)
	got := k.output(id)
	if !strings.Contains(got, "Operation not permitted") || !strings.Contains(got, "touched") {
		k.Errorf("under a profile that forbids mkdir: %q", got)
	}
	s = k.spec("true")
	broken := `{"defaultAction": "SCMP_ACT_NONSENSE"`
	s.Seccomp = &broken
	made, err := k.engine.Create(k.ctx, s)
	if err == nil {
		defer k.remove(made.ID)
		err = k.engine.Start(k.ctx, made.ID)
	}
	if err == nil {
		k.Errorf("a container with a broken profile has started")
	}
	// Nothing of the profile is needed later.
	if err := k.engine.Start(k.ctx, id); err != nil {
		k.Errorf("second start: %v", err)
	}
	k.wait(id)
}

func noNetwork(k *kit) {
	got := k.mustRun(k.spec("grep : /proc/net/dev"))
	if strings.Count(got, ":") != 1 || !strings.HasPrefix(strings.TrimSpace(got), "lo:") {
		k.Errorf("interfaces:\n%s", got)
	}
}

func user(k *kit) {
	if got := k.mustRun(k.spec("id -u; id -g; id -G")); got != "1234\n2345\n2345" {
		k.Errorf("user, group, groups: %q", got)
	}
	s := k.spec("id -u; id -g")
	s.User = "0:0"
	if got := k.mustRun(s); got != "0\n0" {
		k.Errorf("root: %q", got)
	}
}

// keepsID covers an engine of an ordinary user: inside, that user has the numbers of outside.
func keepsID(k *kit) {
	if !k.about.Rootless {
		k.Skip("this engine has the rights of root, and all users")
	}
	if k.keepUser == 0 {
		missing(k, "the engine's user was not given")
	}
	dir := filepath.Join(k.shared, "kept")
	if err := os.Mkdir(dir, 0o777); err != nil {
		k.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		k.Fatal(err)
	}
	id := strconv.Itoa(k.keepUser)
	s := k.spec("id -u; touch /bound/made; stat -c %u /bound/made")
	s.KeepID, s.User = true, id+":"+id
	s.Mounts = append(s.Mounts, container.Mount{Target: "/bound", Source: dir})
	if got := k.mustRun(s); got != id+"\n"+id {
		k.Errorf("inside: %q, want %s", got, id)
	}
	info, err := os.Stat(filepath.Join(dir, "made"))
	if err != nil {
		k.Fatal(err)
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != k.keepUser {
		k.Errorf("outside: %+v, want user %s", info.Sys(), id)
	}
}

func replaces(k *kit) {
	s := k.spec("")
	s.Image = k.rich
	s.Env = []string{"BOTH=spec", "MINE=a=b $HOME", "EMPTY=", "LINES=a\nb"}
	s.Argv = []string{"/bin/sh", "-c", `printf '<%s>' "$FROM_IMAGE" "$BOTH" "$MINE" "${EMPTY-unset}" "$LINES" "$0" "$@"`, "", "a b", "$X", `"`}
	want := "<image><spec><a=b $HOME><><a\nb><><a b><$X><\">"
	if got := k.mustRun(s); got != want {
		k.Errorf("output %q, want %q", got, want)
	}
	s = k.spec("")
	s.Image, s.Argv = k.rich, []string{"/bin/true"} // one word, and the image has a command
	if code, output := k.run(s); code != 0 {
		k.Errorf("exit code %d, output %q", code, output)
	}
}

// wishes covers what an image declares and a container must not get.
func wishes(k *kit) {
	s := k.spec("id -u; pwd")
	s.Image, s.Workdir = k.rich, "/bound"
	if got := k.mustRun(s); got != "1234\n/bound" {
		k.Errorf("user and directory: %q", got)
	}
}

// volumes covers the volumes that an image declares: a place to write below a read-only root.
func volumes(k *kit) {
	if k.volumesBecause != "" {
		k.Skipf("this engine makes the volumes that an image declares: %s", k.volumesBecause)
	}
	for _, user := range []string{"1234:2345", "0:0"} {
		s := k.spec("touch /data/written 2>/dev/null && echo wrote; true")
		s.Image, s.User = k.rich, user
		if got := k.mustRun(s); got != "" {
			k.Errorf("user %s can write in a volume that nobody asked for", user)
		}
	}
}

func namesInside(k *kit) {
	s := k.spec("hostname; pwd")
	s.Hostname, s.Workdir = "inside", "/tmp"
	if got := k.mustRun(s); got != "inside\n/tmp" {
		k.Errorf("hostname and directory: %q", got)
	}
}

func initProcess(k *kit) {
	script := `[ $$ != 1 ] && echo below init
(sleep 0.1 & exec true)
sleep 0.5; ps -o stat | grep -c Z; true`
	if got := k.mustRun(k.spec(script)); got != "below init\n0" {
		k.Errorf("output %q", got)
	}
}

func input(k *kit) {
	if got := k.mustRun(k.spec("cat | wc -c; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo no terminal")); got != "0\nno terminal" {
		k.Errorf("output %q", got)
	}
}
