package hostdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/workberth/workberth/sandbox"
)

// newDir makes a host directory with a workspace "demo".
func newDir(t *testing.T) *Dir {
	t.Helper()
	d, err := Init(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddWorkspace(Workspace{Name: "demo", Workspace: "/srv/demo", Backend: "bubblewrap", Access: "rw"}); err != nil {
		t.Fatal(err)
	}
	return d
}

// keyFile writes a file with fresh public keys, each with options before it.
func keyFile(t *testing.T, options ...string) string {
	t.Helper()
	var text strings.Builder
	for i, o := range options {
		sub, err := Init(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		key, err := sub.HostKey()
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(o + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))) + fmt.Sprintf(" key%d\n", i))
	}
	path := filepath.Join(t.TempDir(), "keys.pub")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// problem checks that an error is one for people.
func problem(t *testing.T, err error, says string) {
	t.Helper()
	var p *sandbox.Problem
	if !errors.As(err, &p) || !errors.Is(err, sandbox.ErrRefused) || p.Remedy == "" {
		t.Errorf("%v is no refusal with a remedy", err)
		return
	}
	if !strings.Contains(p.Error(), says) {
		t.Errorf("%q does not say %q", p.Error(), says)
	}
}

// A new directory is private, complete, and not made twice.
func TestInit(t *testing.T) {
	d := newDir(t)
	for name, mode := range map[string]os.FileMode{"": 0o700, "config.yaml": 0o600, "host_ed25519": 0o600, "workspaces": 0o700, "workspaces/demo/workspace.yaml": 0o600} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v %v, want %o", name, info, err, mode)
		}
	}
	_, err := Init(d.Path())
	problem(t, err, "host key already")
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	problem(t, err, "no host key")
	again, err := Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	c, err := again.Config()
	if err != nil || c.Listen != "127.0.0.1:2222" || c.Drain != 30*time.Second {
		t.Errorf("%+v %v", c, err)
	}
	if c.Limits.Server().Sessions != 0 {
		t.Errorf("the commented defaults are settings: %+v", c)
	}
}

// What others could change or read is refused, file by file.
func TestPermissions(t *testing.T) {
	for name, tc := range map[string]struct {
		mode os.FileMode
		says string
	}{
		"":                                {0o755, "look into it"},
		"config.yaml":                     {0o620, "may change it"},
		"host_ed25519":                    {0o644, "can read the host key"},
		"workspaces":                      {0o770, "may change it"},
		"workspaces/demo":                 {0o777, "may change it"},
		"workspaces/demo/workspace.yaml":  {0o666, "may change it"},
		"workspaces/demo/authorized_keys": {0o602, "may change it"},
	} {
		d := newDir(t)
		if _, err := d.AddKeys("demo", keyFile(t, ""), false); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(d.Path(), name), tc.mode); err != nil {
			t.Fatal(err)
		}
		problem(t, load(d.Path()), tc.says)
	}
}

// load reads everything that a server reads.
func load(path string) error {
	d, err := Open(path)
	if err != nil {
		return err
	}
	_, err = d.Config()
	_, keyErr := d.HostKey()
	_, _, policyErr := d.Policy()
	return errors.Join(err, keyErr, policyErr)
}

// Files that are links, directories, too large, or nonsense.
func TestBadFiles(t *testing.T) {
	d := newDir(t)
	config := filepath.Join(d.Path(), "config.yaml")
	for text, says := range map[string]string{
		"listen: [": "", "limits: {sesions: 3}": "sesions", "unknown: 1": "unknown", "drain: -1s": "negative", "drain: soon": "", "# " + strings.Repeat("x", maxFile): "larger",
	} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := d.Config()
		problem(t, err, says)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", config); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Config(); err == nil {
		t.Error("a link was followed")
	}
	if err := os.WriteFile(filepath.Join(d.Path(), "workspaces/demo/workspace.yaml"), []byte("workspace: relative\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := d.Policy()
	problem(t, err, "not an absolute path")
}

// Keys: added once, listed, withdrawn; options that cannot be kept are refused when added and
// when loaded. C175
func TestKeys(t *testing.T) {
	d := newDir(t)
	file := keyFile(t, "", `from="192.0.2.0/24",no-pty `)
	added, err := d.AddKeys("demo", file, false)
	if err != nil || len(added) != 2 {
		t.Fatal(added, err)
	}
	if again, err := d.AddKeys("demo", file, false); err != nil || len(again) != 0 {
		t.Errorf("again: %v %v", again, err)
	}
	ca, err := d.AddKeys("demo", keyFile(t, ""), true)
	if err != nil || len(ca) != 1 {
		t.Fatal(ca, err)
	}
	p, list, err := d.Policy()
	if err != nil || len(list) != 1 || len(p.Workspaces["demo"].Keys) != 2 || len(p.Workspaces["demo"].Authorities) != 1 || !p.Workspaces["demo"].Keys[1].NoPTY {
		t.Errorf("%+v %v", p, err)
	}
	if err := d.RemoveKey("demo", added[0].Fingerprint()); err != nil {
		t.Fatal(err)
	}
	problem(t, d.RemoveKey("demo", added[0].Fingerprint()), "has none")
	if err := d.RemoveKey("demo", ca[0].Fingerprint()); err != nil {
		t.Fatal(err)
	}
	left, err := d.Keys("demo")
	if err != nil || len(left) != 1 || left[0].Fingerprint() != added[1].Fingerprint() || left[0].Key.From == nil {
		t.Errorf("left: %+v %v", left, err)
	}

	_, err = d.AddKeys("demo", keyFile(t, "", `command="true" `), false)
	problem(t, err, `keys.pub:2: option "command" is not supported`)
	_, err = d.AddKeys("demo", keyFile(t, "no-pty "), true)
	problem(t, err, "an authority has no options")
	_, err = d.AddKeys("demo", filepath.Join(d.Path(), "host_ed25519"), false)
	problem(t, err, "private key")
	_, err = d.AddKeys("demo", filepath.Join(d.Path(), "config.yaml"), false)
	problem(t, err, "not a public key")
	_, err = d.AddKeys("none", file, false)
	problem(t, err, "none of that name")
	_, err = d.AddKeys("../demo", file, false)
	problem(t, err, "a name has")

	keys := filepath.Join(d.Path(), "workspaces/demo/authorized_keys")
	planted, err := os.ReadFile(keyFile(t, `command="true" `))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, append([]byte("# a comment\n\n"), planted...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Policy()
	problem(t, err, `authorized_keys:3: option "command" is not supported`)
}

// Workspaces: names, twice, gone with their keys; their files stay.
func TestWorkspaces(t *testing.T) {
	d := newDir(t)
	if _, err := d.AddKeys("demo", keyFile(t, ""), false); err != nil {
		t.Fatal(err)
	}
	problem(t, d.AddWorkspace(Workspace{Name: "demo", Workspace: "/x"}), "there is one")
	problem(t, d.AddWorkspace(Workspace{Name: "../x", Workspace: "/x"}), "a name has")
	problem(t, d.RemoveWorkspace("none"), "none of that name")
	if err := d.RemoveWorkspace("demo"); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Workspaces(); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
	if err := d.AddWorkspace(Workspace{Name: "demo", Workspace: "/srv/demo"}); err != nil {
		t.Fatal(err)
	}
	if keys, err := d.Keys("demo"); err != nil || len(keys) != 0 {
		t.Errorf("keys of an earlier workspace of the name: %v %v", keys, err)
	}
}

// The revision follows what a sandbox is made of, and nothing else.
func TestRevision(t *testing.T) {
	base := Workspace{Name: "demo", Workspace: "/w", Backend: "docker", Image: "i"}
	same := base
	same.Forward, same.KeepBackground = true, true
	if base.revision() != same.revision() {
		t.Error("forwarding makes another sandbox")
	}
	for _, change := range []func(*Workspace){
		func(w *Workspace) { w.Workspace = "/v" }, func(w *Workspace) { w.Image = "j" }, func(w *Workspace) { w.Access = "ro" },
		func(w *Workspace) { w.Network = "bridge" }, func(w *Workspace) { w.SSH = "a@b" }, func(w *Workspace) { w.Backend = "podman" }, func(w *Workspace) { w.AllowDangerous = []string{"network"} },
	} {
		other := base
		change(&other)
		if base.revision() == other.revision() {
			t.Errorf("%+v makes the same sandbox", other)
		}
	}
}

// Many programs at once lose nothing.
func TestConcurrentKeys(t *testing.T) {
	d := newDir(t)
	var wg sync.WaitGroup
	for range 8 {
		file := keyFile(t, "")
		wg.Go(func() {
			if _, err := d.AddKeys("demo", file, false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if keys, err := d.Keys("demo"); err != nil || len(keys) != 8 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
