package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/hostmount"
	"github.com/workberth/workberth/sandbox"
)

// An ordinary user needs no rights: everything that matters works for one.
func TestOrdinaryUser(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	r := newRig(t)
	for _, c := range r.Check(t.Context()).Checks {
		if c.Result == sandbox.CheckFail {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	sb := ensure(t, r.Backend, r.spec())
	me := fmt.Sprint(os.Geteuid())
	out := sh(t, sb, `id -u; echo x >f; id -un; test -w "$HOME" && echo home; touch /x 2>/dev/null || echo closed; grep Seccomp: /proc/self/status | cut -f2`)
	if want := me + "\nagent\nhome\nclosed\n2\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if got := ownerOf(t, filepath.Join(r.ws, "f")); got != os.Geteuid() {
		t.Errorf("the file belongs to %d", got)
	}
	none := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.Access = sandbox.AccessNone }))
	sh(t, none, "touch f")
	asRoot := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.User = "0:0" }))
	if out := sh(t, asRoot, "id -u; touch g"); out != "0\n" {
		t.Errorf("as user 0:0: %q", out)
	}
	if got := ownerOf(t, filepath.Join(r.ws, "g")); got != os.Geteuid() {
		t.Errorf("root's file inside belongs to %d", got)
	}
}

// RLIMIT_NPROC bounds the processes of one sandbox of an ordinary user, and the
// others do not count.
func TestOrdinaryUserPids(t *testing.T) {
	if asOrdinaryUser(t) {
		return
	}
	if !countsPerNamespace(os.Geteuid()) {
		t.Skip("this kernel does not count processes per user namespace")
	}
	r := newRig(t)
	spec := r.spec(func(c *sandbox.Config) { c.Limits.Pids = 40 })
	crowded := ensure(t, r.Backend, r.spec())
	sh(t, crowded, "for i in $(seq 100); do sleep 300 >/dev/null 2>&1 & done; true")
	sb := ensure(t, r.Backend, spec)
	if !strings.Contains(sb.Info().Runtime["limit.pids"], "40") {
		t.Errorf("facts %v", sb.Info().Runtime)
	}
	out, _ := shStatus(t, sb, `i=0; while [ $i -lt 100 ]; do (sleep 5 & true) >/dev/null 2>&1 || break; i=$((i+1)); done; [ $i -lt 100 ] && echo bounded`)
	if !strings.Contains(out, "bounded") && !strings.Contains(strings.ToLower(out), "fork") {
		t.Errorf("100 processes were started: %q", out)
	}
	sh(t, crowded, "true")
}

// C043: run by root, a sandbox on a user's workspace is that user's.
func TestRootForAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r := newRig(t)
	if err := os.Chown(r.ws, unprivileged, unprivileged); err != nil {
		t.Fatal(err)
	}
	sb := ensure(t, r.Backend, r.spec())
	out := sh(t, sb, `id -u; id -G; mkdir d; echo x >d/f; cat `+helperFile+` | head -c 4 | tail -c 3; (: >/proc/sys/kernel/core_pattern) 2>/dev/null || echo closed`)
	if want := fmt.Sprintf("%d\n%d\nELFclosed\n", unprivileged, unprivileged); out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	b, err := sb.Bridge(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFile(t.Context(), "new/dir/file", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"d", "d/f", "new", "new/dir", "new/dir/file"} {
		if got := ownerOf(t, filepath.Join(r.ws, p)); got != unprivileged {
			t.Errorf("%s belongs to %d", p, got)
		}
	}
	// The sandbox's user on this machine is the owner, whatever it is called inside.
	asRoot := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.User = "0:0" }))
	sh(t, asRoot, "touch by-root")
	if got := ownerOf(t, filepath.Join(r.ws, "by-root")); got != unprivileged {
		t.Errorf("by-root belongs to %d", got)
	}
}

// A helper that the user cannot come to is copied; a workspace that the user cannot
// come to is refused with the directory that is closed.
func TestClosedParents(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r := newRig(t)
	private := filepath.Join(r.dir, "private")
	if err := os.MkdirAll(filepath.Join(private, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(helper(t))
	if err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(private, "berth-guest")
	if err := os.WriteFile(hidden, data, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{r.ws, filepath.Join(private, "ws")} {
		if err := os.Chown(p, unprivileged, unprivileged); err != nil {
			t.Fatal(err)
		}
	}
	b := r.open(t, func(o *Options) { o.HelperPath = hidden; o.StateDir = filepath.Join(r.dir, "state2") })
	sb := ensure(t, b, r.spec())
	if out := sh(t, sb, "id -u; (: >"+helperFile+") 2>/dev/null || echo kept"); out != fmt.Sprintf("%d\nkept\n", unprivileged) {
		t.Errorf("with a copied helper: %q", out)
	}
	spec := r.spec()
	spec.Workspace = filepath.Join(private, "ws")
	_, err = b.Ensure(t.Context(), spec)
	p := problem(t, err, "workspace", sandbox.ErrRefused)
	if !strings.Contains(p.Rule, private+" (mode 0700") || !strings.Contains(p.Remedy, "chmod o+x "+private) {
		t.Errorf("problem %+v", p)
	}
	bound := r.spec(func(c *sandbox.Config) {
		c.Binds = []sandbox.Bind{{Source: filepath.Join(private, "ws"), Target: "/data"}}
	})
	_, err = b.Ensure(t.Context(), bound)
	problem(t, err, "binds", sandbox.ErrRefused)
}

// The accounts inside, by who is who.
func TestAccounts(t *testing.T) {
	for name, c := range map[string]struct {
		a             account
		passwd, group string
	}{
		"ordinary": {
			account{InsideUID: 1000, InsideGID: 100},
			"root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:1000:100:agent:/h:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
			"root:x:0:\nagent:x:100:\nnogroup:x:65534:\n",
		},
		"root": {
			account{},
			"root:x:0:0:root:/h:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
			"root:x:0:\nnogroup:x:65534:\n",
		},
		"nobody": {
			account{InsideUID: hostmount.Nobody, InsideGID: hostmount.Nobody},
			"root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/h:/bin/sh\n",
			"root:x:0:\nnogroup:x:65534:\n",
		},
	} {
		if got := passwdFor(c.a, "/h", "/bin/sh"); got != c.passwd {
			t.Errorf("%s: passwd %q", name, got)
		}
		if got := groupFor(c.a); got != c.group {
			t.Errorf("%s: group %q", name, got)
		}
	}
	dir := t.TempDir()
	spec := sandbox.Spec{Workspace: dir, Config: sandbox.Config{Access: sandbox.AccessReadWrite}}
	if a, err := hostmount.AccountFor(spec, 77, 78); err != nil || a != (account{UID: 77, GID: 78, InsideUID: 77, InsideGID: 78}) {
		t.Errorf("an ordinary user: %+v, %v", a, err)
	}
	if a, err := hostmount.AccountFor(sandbox.Spec{Config: sandbox.Config{Access: sandbox.AccessNone, User: "5:6"}}, 0, 0); err != nil || a != (account{InsideUID: 5, InsideGID: 6}) {
		t.Errorf("root without a workspace: %+v, %v", a, err)
	}
	spec.Workspace = filepath.Join(dir, "missing")
	if _, err := hostmount.AccountFor(spec, 0, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing workspace: %v", err)
	}
}
