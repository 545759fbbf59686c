package bubblewrap

import (
	"os"
	"strings"
	"testing"

	"github.com/workberth/workberth/sandbox"
)

// Limits are in force, and Info tells by what.
func TestLimits(t *testing.T) {
	r := newRig(t)
	sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) {
		c.Limits = sandbox.Limits{Pids: 60, MemoryBytes: 256 << 20, OpenFiles: 64, FileSizeBytes: 1 << 20}
	}))
	facts := sb.Info().Runtime
	t.Logf("facts: %v", facts)
	if out := sh(t, sb, "ulimit -n; ulimit -c"); out != "64\n0\n" {
		t.Errorf("open files, core files: %q", out)
	}
	if out := sh(t, sb, "dd if=/dev/zero of=big bs=64k count=64 2>/dev/null; wc -c <big"); out != "1048576\n" {
		t.Errorf("file size: %q", out)
	}
	if strings.HasPrefix(facts["limit.pids"], "60") {
		out, _ := shStatus(t, sb, `i=0; while [ $i -lt 200 ]; do (sleep 2 & true) >/dev/null 2>&1 || break; i=$((i+1)); done; [ $i -lt 200 ] && echo bounded`)
		if !strings.Contains(out, "bounded") && !strings.Contains(strings.ToLower(out), "fork") {
			t.Errorf("200 processes were started: %q", out)
		}
	} else if os.Geteuid() == 0 {
		t.Logf("processes are not bounded: %s", facts["limit.pids"])
	}
	if strings.Contains(facts["limit.memory"], "control group") {
		_, status := shStatus(t, sb, `head -c 700000000 /dev/zero | tail -c 600000000 >/dev/null`)
		if status.Code == 0 {
			t.Error("600 MB were held under a limit of 256 MiB")
		}
		if sb.Info().State != sandbox.StateRunning {
			t.Errorf("the sandbox ended with the command: %s", sb.Info().Detail)
		}
	}
}

// Processor time, where it can be bounded: half a processor takes twice as long as
// it computes.
func TestCPULimit(t *testing.T) {
	r := newRig(t)
	spec := r.spec(func(c *sandbox.Config) { c.Limits.CPUs = 0.25 })
	if !r.Features().CPULimit {
		_, err := r.Ensure(t.Context(), spec)
		problem(t, err, "limits", sandbox.ErrRefused)
		return
	}
	sb := ensure(t, r.Backend, spec)
	if !strings.HasPrefix(sb.Info().Runtime["limit.cpu"], "0.25") {
		t.Errorf("facts %v", sb.Info().Runtime)
	}
	pids := pidsOf(t, sb.Info().Runtime["tag"])
	if len(pids) == 0 {
		t.Fatal("no process found")
	}
	for _, g := range groupsOf(t, sb.Info().ID) {
		quota, err := os.ReadFile(g + "/cpu.cfs_quota_us")
		if err == nil && strings.TrimSpace(string(quota)) == "25000" {
			return
		}
		if limit, err := os.ReadFile(g + "/cpu.max"); err == nil && strings.TrimSpace(string(limit)) == "25000 100000" {
			return
		}
	}
	t.Error("no control group of the sandbox has that limit")
}

// Limits without control groups: what takes their place.
func TestLimitsWithoutGroups(t *testing.T) {
	if countsPerNamespace(0) {
		t.Error("RLIMIT_NPROC is said to bound root")
	}
	if asOrdinaryUser(t) {
		return
	}
	r := newRig(t)
	if r.enforceable().cpu {
		t.Skip("control groups are delegated to this user")
	}
	_, err := r.Ensure(t.Context(), r.spec(func(c *sandbox.Config) { c.Limits.CPUs = 1 }))
	if p := problem(t, err, "limits", sandbox.ErrRefused); !strings.Contains(p.Rule, "control groups") {
		t.Errorf("%+v", p)
	}
	sb := ensure(t, r.Backend, r.spec(func(c *sandbox.Config) { c.Limits.MemoryBytes = 512 << 20 }))
	if !strings.Contains(sb.Info().Runtime["limit.memory"], "RLIMIT_AS") {
		t.Errorf("facts %v", sb.Info().Runtime)
	}
	if out := sh(t, sb, "ulimit -v"); out != "524288\n" {
		t.Errorf("address space %q", out)
	}
	warned := false
	for _, c := range r.Check(t.Context()).Checks {
		if c.Name == "limit.memory" {
			warned = c.Result == sandbox.CheckWarn && c.Remedy != ""
		}
	}
	if !warned {
		t.Error("the check does not tell that memory is bounded per process only")
	}
}
