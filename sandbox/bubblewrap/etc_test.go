package bubblewrap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fixture makes a root directory of a machine: names that end in "/" are
// directories, "a -> b" are links, the rest are files.
func fixture(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, n := range names {
		link, target, isLink := strings.Cut(n, " -> ")
		full := filepath.Join(root, link)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case isLink:
			err = os.Symlink(target, full)
		case strings.HasSuffix(n, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(n), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// lines shows entries for comparison.
func lines(root string, entries []entry) []string {
	var out []string
	for _, e := range entries {
		switch {
		case e.dir != 0:
			out = append(out, e.path+"/")
		case e.link != "":
			out = append(out, e.path+" -> "+e.link)
		case e.bind != "":
			out = append(out, e.path+" = "+strings.TrimPrefix(e.bind, root))
		case e.copy != "":
			out = append(out, e.path+" < "+strings.TrimPrefix(e.copy, root))
		default:
			out = append(out, e.path)
		}
	}
	return out
}

// Only what is chosen by name appears, whatever else a machine has in /etc.
func TestEtc(t *testing.T) {
	root := fixture(t,
		"etc/shadow", "etc/gshadow", "etc/sudoers", "etc/ssh/ssh_host_ed25519_key", "etc/ssl/private/key.pem", "etc/ssl/certs/ca.pem",
		"etc/ssl/openssl.cnf", "etc/environment", "etc/profile", "etc/profile.d/token.sh", "etc/gitconfig", "etc/npmrc", "etc/machine-id",
		"etc/hosts", "etc/passwd", "etc/group", "etc/fstab", "etc/NetworkManager/system-connections/wifi", "etc/docker/daemon.json",
		"etc/ld.so.cache", "etc/services", "etc/resolv.conf",
		"etc/localtime -> /usr/share/zoneinfo/UTC", "etc/os-release -> ../usr/lib/os-release", "etc/timezone -> shadow",
		"etc/alternatives/", "etc/java-17-openjdk/", "etc/fonts -> /root",
	)
	if err := unix.Mkfifo(filepath.Join(root, "etc/protocols"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(root, "etc/shadow"), 0o640); err != nil {
		t.Fatal(err)
	}
	facts := etcFacts{account: account{InsideUID: 7, InsideGID: 8}, home: "/h", shell: "/bin/sh", hostname: "box"}
	got := lines(root, etc(root, facts))
	want := []string{
		"/etc/", "/etc/passwd", "/etc/group", "/etc/hostname", "/etc/hosts", "/etc/nsswitch.conf", "/etc/mtab -> /proc/self/mounts",
		"/etc/ld.so.cache < /etc/ld.so.cache", "/etc/localtime -> /usr/share/zoneinfo/UTC",
		"/etc/os-release -> ../usr/lib/os-release", "/etc/services < /etc/services",
		"/etc/ssl/", "/etc/ssl/openssl.cnf < /etc/ssl/openssl.cnf",
		"/etc/alternatives = /etc/alternatives", "/etc/ssl/certs = /etc/ssl/certs", "/etc/java-17-openjdk = /etc/java-17-openjdk",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	facts.network = true
	if got := lines(root, etc(root, facts)); !slices.Contains(got, "/etc/resolv.conf < /etc/resolv.conf") {
		t.Errorf("with a network: %q", got)
	}
	for _, e := range etc(root, facts) {
		if e.path == "/etc/nsswitch.conf" && !strings.Contains(e.text, "hosts: files dns\n") {
			t.Errorf("nsswitch with a network: %q", e.text)
		}
	}
}

// The linker's directories are in one file, whatever included what; large files and
// others than files are left out.
func TestLinkerConf(t *testing.T) {
	root := fixture(t, "etc/protocols")
	for name, text := range map[string]string{
		"ld.so.conf": "include ld.so.conf.d/*.conf\n/opt/first # not a comment\n", "ld.so.conf.d/a.conf": "# comment\n/usr/local/lib\n\n  /x/y  \nrelative\n",
		"ld.so.conf.d/b.conf": "/z", "ld.so.conf.d/notes": "/no", "services": strings.Repeat("x", maxEtcFile+1),
	} {
		full := filepath.Join(root, "etc", name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := linkerConf(root), "/opt/first # not a comment\n/usr/local/lib\n/x/y\n/z\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := lines(root, etc(root, etcFacts{})); slices.Contains(got, "/etc/services < /etc/services") || !slices.Contains(got, "/etc/ld.so.conf") {
		t.Errorf("got %q", got)
	}
}

// A link is kept only when it leads into /usr; one to a secret file is not followed
// into it.
func TestEtcLinks(t *testing.T) {
	root := fixture(t,
		"etc/localtime -> ../../../usr/share/../../etc/shadow", "etc/shadow", "etc/timezone -> sub/zone", "etc/sub/zone",
		"etc/os-release -> gone", "etc/services -> /usr/../etc/shadow",
	)
	got := lines(root, etc(root, etcFacts{hostname: "box"}))
	for _, line := range got {
		if strings.Contains(line, "shadow") {
			t.Errorf("%q", line)
		}
	}
	// What an administrator linked elsewhere in /etc is copied by its own name.
	if !slices.Contains(got, "/etc/timezone < /etc/timezone") {
		t.Errorf("got %q", got)
	}
}

// Machines with and without a merged /usr.
func TestSystem(t *testing.T) {
	merged := fixture(t, "usr/bin/", "usr/lib/", "bin -> usr/bin", "sbin -> usr/sbin", "lib -> usr/lib", "lib64 -> usr/lib64", "opt/", "home/")
	if got, want := lines(merged, system(merged)), []string{"/usr = /usr", "/bin -> usr/bin", "/sbin -> usr/sbin", "/lib -> usr/lib", "/lib64 -> usr/lib64"}; !slices.Equal(got, want) {
		t.Errorf("merged: %q", got)
	}
	split := fixture(t, "usr/", "bin/sh", "sbin/", "lib/", "lib64 -> lib")
	if got, want := lines(split, system(split)), []string{"/usr = /usr", "/bin = /bin", "/sbin = /sbin", "/lib = /lib", "/lib64 -> lib"}; !slices.Equal(got, want) {
		t.Errorf("split: %q", got)
	}
	if got := shellOf(split); got != "/bin/sh" {
		t.Errorf("shell %q", got)
	}
}
