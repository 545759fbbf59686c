package sshhost

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fill writes n small files and returns the directory.
func (h *host) fill(t testing.TB, name string, n int) string {
	t.Helper()
	dir := h.path(name)
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i%7))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file %d", i)), []byte(strings.Repeat(fmt.Sprint(i), i%100)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d0", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// same compares two trees.
func (h *host) same(t testing.TB, a, b string) {
	t.Helper()
	if out, err := h.command(t, "diff", "-r", "--no-dereference", a, b).CombinedOutput(); err != nil {
		t.Errorf("%s and %s differ: %v\n%.2000s", a, b, err, out)
	}
}

// A tree goes there and back with rsync.
func TestRsync(t *testing.T) {
	t.Parallel()
	need(t, "rsync")
	h := start(t)
	n := 5000
	if testing.Short() {
		n = 300
	}
	dir := h.fill(t, "tree", n)
	output(t, h.command(t, "rsync", "-a", dir+"/", "demo:there/"))
	h.same(t, dir, filepath.Join(h.ws, "there"))
	output(t, h.command(t, "rsync", "-a", "demo:there/", h.path("back")+"/"))
	h.same(t, dir, h.path("back"))
	h.healthy(t)
	if out := output(t, h.command(t, "rsync", "-ai", dir+"/", "demo:there/")); out != "" {
		t.Errorf("again: %s", out) // times were kept
	}
}

// scp by both protocols, one file and a tree, and with times.
func TestScp(t *testing.T) {
	t.Parallel()
	need(t, "scp")
	h := start(t)
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	h.write(t, "data", string(data))
	then := time.Unix(1_500_000_000, 0)
	if err := os.Chtimes(h.path("data"), then, then); err != nil {
		t.Fatal(err)
	}
	dir := h.fill(t, "tree", 100)
	if err := os.Remove(filepath.Join(dir, "link")); err != nil { // scp follows links
		t.Fatal(err)
	}
	for _, mode := range []string{"-s", "-O"} {
		to := "to" + mode
		output(t, h.command(t, "scp", "-F", h.path("config"), mode, "-p", h.path("data"), "demo:"+to))
		info, err := os.Stat(filepath.Join(h.ws, to))
		if err != nil || !info.ModTime().Equal(then) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", mode, info, err)
		}
		output(t, h.command(t, "scp", "-F", h.path("config"), mode, "demo:/workspace/"+to, h.path("back"+mode)))
		if back, err := os.ReadFile(h.path("back" + mode)); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%s: %d bytes came back, %v", mode, len(back), err)
		}
		output(t, h.command(t, "scp", "-F", h.path("config"), mode, "-r", dir, "demo:tree"+mode))
		h.same(t, dir, filepath.Join(h.ws, "tree"+mode))
	}
}

// sftp -b with the tricks of C181: nothing outside is read or changed.
func TestSftpTricks(t *testing.T) {
	t.Parallel()
	need(t, "sftp")
	h := start(t)
	secret := filepath.Join(filepath.Dir(h.ws), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": secret, "up": "..", "root": "/proc/self/root"} {
		if err := os.Symlink(target, filepath.Join(h.ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.write(t, "mine", "mine")
	long := strings.Repeat("n", 900) // the client cuts lines; longer ones are in the package's own tests
	batch := []string{
		"get ../secret", "get ../../../../../../.." + secret, "get " + secret, "get out", "get up/secret", "get root" + secret, "get /proc/1/root" + secret,
		"put mine ../secret", "put mine out", "put mine up/secret", "put mine " + secret, "rename out ../moved", "rename mine /", "chmod 000 out",
		"chmod 000 up/secret", "rm up/secret", "rm " + secret, "ln -s " + secret + " l1", "ln -s ../secret l2", "ln up/secret hard", "mkdir ../dir",
		"rmdir /workspace", "rename /workspace /tmp/x", "ls ../../root", "get " + long, "put mine " + long, "mkdir " + long, "chown 12345 up/secret",
	}
	h.write(t, "batch", "-"+strings.Join(batch, "\n-")+"\n-pwd\n-put mine proof\n")
	cmd := h.command(t, "sftp", "-F", h.path("config"), "-b", h.path("batch"), "demo")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Remote working directory: /workspace\n") {
		t.Errorf("another directory:\n%s", out)
	}
	if strings.Contains(strings.ReplaceAll(string(out), secret, ""), filepath.Dir(h.ws)) {
		t.Errorf("a path of the host is told:\n%s", out)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("outside: %q, %v", data, err)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("outside: %v %v", info, err)
	}
	if data, err := os.ReadFile(filepath.Join(h.ws, "proof")); err != nil || string(data) != "mine" {
		t.Errorf("what is permitted: %q, %v", data, err)
	}
	for _, name := range []string{"secret", "moved", "dir", "hard"} {
		if _, err := os.Stat(h.path(name)); err == nil {
			t.Errorf("the client has got %s", name)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(h.ws))
	if err != nil || len(entries) > 6 {
		t.Errorf("beside the workspace: %v %v", entries, err)
	}
}

// git clones from and pushes to a repository in the workspace.
func TestGit(t *testing.T) {
	t.Parallel()
	need(t, "git")
	h := start(t)
	output(t, h.ssh(t, "demo", "git init -q --bare -b main repo.git"))
	output(t, h.command(t, "git", "clone", "-q", "demo:repo.git", "clone"))
	clone := h.path("clone")
	h.write(t, "clone/file", "content")
	for _, args := range [][]string{{"checkout", "-q", "-B", "main"}, {"add", "file"}, {"commit", "-qm", "first"}, {"push", "-q", "origin", "main"}} {
		output(t, h.command(t, "git", append([]string{"-C", clone}, args...)...))
	}
	output(t, h.command(t, "git", "clone", "-q", "ssh://demo/workspace/repo.git", "again"))
	if data, err := os.ReadFile(h.path("again/file")); err != nil || string(data) != "content" {
		t.Errorf("%q, %v", data, err)
	}
	output(t, h.command(t, "git", "-C", clone, "fsck", "--strict"))
}

// A mounted workspace, used as an editor, git and a build do.
func TestSshfs(t *testing.T) {
	t.Parallel()
	need(t, "sshfs", "fusermount3", "git")
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		missing(t, "/dev/fuse cannot be used: "+err.Error())
	} else {
		f.Close()
	}
	h := start(t)
	mount := h.path("mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, h.command(t, "sshfs", "-F", h.path("config"), "demo:", mount))
	unmounted := false
	unmount := func() {
		if !unmounted {
			unmounted = exec.Command("fusermount3", "-u", mount).Run() == nil
		}
	}
	defer unmount()
	script := `set -eux
cd "$1"
echo one > f; echo two >> f; test "$(cat f)" = "one
two"
printf XX | dd of=f bs=1 seek=1 conv=notrunc 2>/dev/null; test "$(head -1 f)" = oXX
truncate -s 3 f; test "$(cat f)" = oXX
touch -d 2020-01-01T00:00:00Z f; test "$(stat -c %Y f)" = 1577836800
chmod 640 f; test "$(stat -c %a f)" = 640
mv f g; ln -s g l; test "$(cat l)" = oXX; mkdir -p a/b; rmdir a/b a; df . >/dev/null
head -c 300000 /dev/urandom > r; cp r r2; cmp r r2
git init -q repo; cd repo; echo x > x; git add x; git commit -qm x; git fsck --strict; test -z "$(git status --porcelain)"
cd ..; rm -r repo
mkdir -p prog/inner; cd prog; printf 'module prog\n\ngo 1.21\n' > go.mod
printf 'package main\n\nimport "prog/inner"\n\nfunc main() { println(inner.Word) }\n' > main.go
for word in one two; do
	printf 'package inner\n\nconst Word = "%s"\n' $word > inner/inner.go
	go build -o out .; test "$(./out 2>&1)" = $word; go vet ./...
done
cd ..; rm -r prog
`
	cmd := h.command(t, "sh", "-c", script, "sh", mount)
	cache, err := exec.Command("go", "env", "GOCACHE").Output() // what is of Go itself is built already
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOFLAGS=", "GOCACHE="+strings.TrimSpace(string(cache)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// What was written right before the end is not lost.
	if err := os.WriteFile(filepath.Join(mount, "last"), bytes.Repeat([]byte("z"), 200_000), 0o644); err != nil {
		t.Fatal(err)
	}
	unmount()
	eventually(t, "the last file", func() bool {
		data, err := os.ReadFile(filepath.Join(h.ws, "last"))
		return err == nil && len(data) == 200_000
	})
	if data, err := os.ReadFile(filepath.Join(h.ws, "g")); err != nil || string(data) != "oXX" {
		t.Errorf("%q, %v", data, err)
	}
}

// Another client's idea of the protocol.
func TestParamiko(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3" // of the distribution, as the module is
	need(t, python)
	if err := exec.Command(python, "-c", "import paramiko").Run(); err != nil {
		missing(t, "paramiko is not installed")
	}
	h := start(t)
	script := `
import paramiko, sys, os
port, key, known = int(sys.argv[1]), sys.argv[2], sys.argv[3]
c = paramiko.SSHClient(); c.load_host_keys(known)
c.connect("127.0.0.1", port, "demo", key_filename=key, allow_agent=False, look_for_keys=False)
i, o, e = c.exec_command("cat; echo err >&2; exit 4")
i.write(b"in\n"); i.channel.shutdown_write()
assert o.read() == b"in\n" and e.read() == b"err\n" and o.channel.recv_exit_status() == 4
s = c.open_sftp()
data = os.urandom(1000000)
with s.open("f", "wb") as f: f.write(data)
with s.open("f", "rb") as f: assert f.read() == data
with s.open("f", "r+b") as f: f.seek(10); f.write(b"XX"); f.seek(0); assert f.read(14)[8:14] == data[8:10] + b"XX" + data[12:14]
with s.open("f", "ab") as f: f.write(b"end")
assert s.stat("f").st_size == 1000003
s.utime("f", (1500000000, 1500000000)); assert s.stat("f").st_mtime == 1500000000
s.mkdir("d"); s.rename("f", "d/f"); assert s.listdir("d") == ["f"]; s.remove("d/f"); s.rmdir("d")
assert s.normalize(".") == "/workspace"
try: s.stat("none"); assert False
except FileNotFoundError: pass
try: s.open("/usr/x", "w"); assert False
except PermissionError: pass
ch = c.get_transport().open_session(); ch.get_pty("xterm", 90, 30); ch.exec_command("stty size")
assert ch.makefile().read().strip() == b"30 90"
c.close()
`
	output(t, h.command(t, python, "-c", script, h.port, h.path("id"), h.path("known_hosts")))
}
