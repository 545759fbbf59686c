package bubblewrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// Profiles of one's own are in force; without a filter, namespaces stay forbidden by
// other means. C017
func TestSeccompProfiles(t *testing.T) {
	r := newRig(t)
	profile := filepath.Join(r.dir, "profile.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(profile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	with := func(name string, allow ...string) sandbox.Spec {
		return r.spec(func(c *sandbox.Config) { c.SeccompProfile, c.AllowDangerous = name, allow })
	}
	write(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]}`)
	own := ensure(t, r.Backend, with(profile))
	if out := sh(t, own, `mkdir d 2>&1 | grep -c "No space left"; touch f; unshare -U true 2>/dev/null || echo denied`); out != "1\ndenied\n" {
		t.Errorf("own profile: %q", out)
	}
	write(`{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["nosuchcall"], "action": "SCMP_ACT_ERRNO"}]}`)
	_, err := r.Ensure(t.Context(), with(profile))
	if p := problem(t, err, "seccompProfile", sandbox.ErrRefused); !strings.Contains(p.Rule, "line 2") {
		t.Errorf("%+v", p)
	}
	if _, err := r.Ensure(t.Context(), with("unconfined")); err == nil {
		t.Error("no filter at all was not refused")
	}
	none := ensure(t, r.Backend, with("unconfined", "seccompProfile"))
	if out := sh(t, none, `grep Seccomp: /proc/self/status | cut -f2; unshare -U true 2>/dev/null || echo denied; grep CapEff /proc/self/status | cut -f2`); out != "0\ndenied\n0000000000000000\n" {
		t.Errorf("without a filter: %q", out)
	}
}
