package enginetest

import (
	"strings"

	"github.com/workberth/workberth/internal/container"
)

func pidsLimit(k *kit) {
	if !k.about.PidsLimit {
		k.Skip("this engine cannot limit processes")
	}
	script := `i=0; while [ $i -lt 40 ]; do sleep 20 & i=$((i+1)); done; echo all`
	s := k.spec(script)
	s.Limits.Pids = 16
	if code, output := k.run(s); code == 0 || strings.Contains(output, "all") {
		k.Errorf("40 processes fit into 16: %d, %q", code, output)
	}
	for _, limit := range []int64{64, 0} {
		s = k.spec(script)
		s.Limits.Pids = limit
		if _, output := k.run(s); !strings.Contains(output, "all") {
			k.Errorf("40 processes do not fit into %d: %q", limit, output)
		}
	}
}

func memoryLimit(k *kit) {
	if !k.about.MemoryLimit {
		k.Skip("this engine cannot limit memory")
	}
	for limit, want := range map[int64]bool{32 << 20: false, 512 << 20: true, 0: true} {
		s := k.spec("dd if=/dev/zero of=/dev/null bs=160M count=1 2>/dev/null && echo fits")
		s.Limits.MemoryBytes = limit
		if code, output := k.run(s); (code == 0) != want || strings.Contains(output, "fits") != want {
			k.Errorf("160 MiB in %d bytes: exit code %d, output %q", limit, code, output)
		}
	}
	s := k.spec("exec dd if=/dev/zero of=/dev/null bs=160M count=1")
	s.Limits.MemoryBytes = 32 << 20
	if code, output := k.run(s); code != 137 {
		k.Errorf("killed for want of memory: exit code %d, output %q", code, output)
	}
}

func cpuLimit(k *kit) {
	if !k.about.CPULimit {
		k.Skip("this engine cannot limit processor time")
	}
	for _, cpus := range []float64{0.5, 1.25, 0.01} {
		s := k.spec("true")
		s.Limits.CPUs = cpus
		k.mustRun(s)
	}
}

// limitsInside returns the soft and hard limits inside a container by their titles.
func (k *kit) limitsInside(l container.Limits) map[string]string {
	k.Helper()
	s := k.spec("cat /proc/self/limits")
	s.Limits = l
	found := map[string]string{}
	for line := range strings.Lines(k.mustRun(s)) {
		if len(line) > 26 {
			fields := strings.Fields(line[26:])
			if len(fields) >= 2 {
				found[strings.TrimSpace(line[:26])] = fields[0] + " " + fields[1]
			}
		}
	}
	return found
}

func ulimits(k *kit) {
	const files, size, processes = "Max open files", "Max file size", "Max processes"
	free := k.limitsInside(container.Limits{Pids: 64})
	for _, tc := range []struct {
		limits      container.Limits
		files, size string
	}{
		{container.Limits{Pids: 64, OpenFiles: 200}, "200 200", free[size]},
		{container.Limits{Pids: 64, FileSizeBytes: 1 << 20}, "", "1048576 1048576"},
		{container.Limits{Pids: 64, OpenFiles: 300, FileSizeBytes: 2 << 20}, "300 300", "2097152 2097152"},
	} {
		got := k.limitsInside(tc.limits)
		if tc.files != "" && got[files] != tc.files || got[size] != tc.size || got[processes] == "" {
			k.Errorf("%+v: open files %q, file size %q, processes %q", tc.limits, got[files], got[size], got[processes])
		}
	}
	s := k.spec("dd if=/dev/zero of=/tmp/big bs=1M count=3 2>/dev/null; stat -c %s /tmp/big")
	s.Limits.FileSizeBytes = 1 << 20
	if got := k.mustRun(s); !strings.HasSuffix(got, "1048576") {
		k.Errorf("a file grew to %q bytes", got)
	}
}
