//go:build linux

package reaper

import (
	"strconv"
	"strings"
	"testing"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Limits hold for the command and what it starts, hard and soft, and not for its
// reaper.
func TestLimits(t *testing.T) {
	r := newRunner(t)
	for _, tc := range []struct {
		name   string
		limits proc.Limits
		script string
		want   string
	}{
		{"open files", proc.Limits{OpenFiles: 77}, "ulimit -Sn; ulimit -Hn; sh -c 'ulimit -n'", "77\n77\n77\n"},
		{"file size", proc.Limits{FileSize: 1 << 20}, "ulimit -Sf; ulimit -Hf", "2048\n2048\n"},
		{"memory", proc.Limits{AddressSpace: 512 << 20}, "ulimit -Sv; ulimit -Hv", "524288\n524288\n"},
		{"processes", proc.Limits{Processes: 99}, "grep -o 'Max processes  *[0-9]*  *[0-9]*' /proc/self/limits | tr -s ' '", "Max processes 99 99\n"},
		{"processor time", proc.Limits{CPUSeconds: 1000}, "ulimit -St; ulimit -Ht", "1000\n1000\n"},
		{"core files", proc.Limits{}, "ulimit -Sc; ulimit -Hc", "0\n0\n"},
		{"all", proc.Limits{OpenFiles: 50, FileSize: 512, AddressSpace: 1 << 30, Processes: 1000, CPUSeconds: 9},
			"ulimit -n; ulimit -f; ulimit -v; ulimit -t", "50\n1\n1048576\n9\n"},
		{"more than there is", proc.Limits{OpenFiles: 1 << 40}, `test "$(ulimit -n)" -gt 100 && echo lower`, "lower\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := script(tc.script)
			spec.Limits = tc.limits
			if got := run(t, r, spec, nil); got.stdout != tc.want || got.status.Code != 0 {
				t.Errorf("got %q %q %+v, want %q", got.stdout, got.stderr, got.status, tc.want)
			}
			// What would end the reaper, or keep it from its work, does not hold for it.
			spec = script(`tr -s ' ' < /proc/$PPID/limits | grep -E '^Max (address space|cpu time)'; read -r a b c soft rest <<X
$(grep 'Max open files' /proc/$PPID/limits)
X
test $soft -ge 64 && echo enough`)
			spec.Limits = tc.limits
			want := "Max cpu time unlimited unlimited seconds \nMax address space unlimited unlimited bytes \nenough\n"
			if got := run(t, r, spec, nil); got.stdout != want {
				t.Errorf("the reaper has %q, want %q", got.stdout, want)
			}
		})
	}
}

// A command has its own limits, whatever its reaper ran before.
func TestLimitsDoNotStay(t *testing.T) {
	r := newRunner(t)
	plain := run(t, r, script("ulimit -n; ulimit -f"), nil).stdout
	for _, l := range []proc.Limits{
		{OpenFiles: 100}, {OpenFiles: 200}, {}, {FileSize: 1024}, {FileSize: 1024}, {FileSize: 4096, OpenFiles: 100}, {}, {OpenFiles: 5000, AddressSpace: 1 << 30}, {},
	} {
		want := strings.Split(plain, "\n")
		if l.OpenFiles != 0 {
			want[0] = strconv.FormatUint(l.OpenFiles, 10)
		}
		if l.FileSize != 0 {
			want[1] = strconv.FormatUint(l.FileSize/512, 10)
		}
		spec := script("ulimit -n; ulimit -f")
		spec.Limits = l
		if got := run(t, r, spec, nil).stdout; got != strings.Join(want, "\n") {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

// Core files are forbidden unless they are asked for.
func TestCoreFiles(t *testing.T) {
	// As far as whoever started this process allows them.
	allowed := run(t, newRunner(t), func() proc.Spec {
		spec := script("ulimit -c")
		spec.Limits.CoreFileBytes = 1 << 20
		return spec
	}(), nil).stdout
	r := newRunner(t)
	for _, n := range []uint64{0, 1 << 20, 0, 1 << 20} {
		spec := script("ulimit -c")
		spec.Limits.CoreFileBytes = n
		want := "0\n"
		if n > 0 {
			want = allowed
		}
		if got := run(t, r, spec, nil).stdout; got != want {
			t.Errorf("core files of %d bytes: %q, want %q", n, got, want)
		}
	}
}

// Limits act: who exceeds one is stopped by the kernel.
func TestLimitsAct(t *testing.T) {
	r := newRunner(t)
	spec := script("head -c 100000 /dev/zero > " + t.TempDir() + "/f; echo $?")
	spec.Limits.FileSize = 4096
	if got := run(t, r, spec, nil); !strings.HasSuffix(got.stdout, "153\n") && got.stdout != "1\n" { // SIGXFSZ
		t.Errorf("file size: %q %+v", got.stdout, got)
	}
	spec = proc.Spec{Argv: []string{"sh", "-c", "while :; do :; done"}, Env: testEnv(), Limits: proc.Limits{CPUSeconds: 1}}
	if got := run(t, r, spec, nil); got.status.Signal == 0 {
		t.Errorf("processor time: %+v", got.status)
	}
}

// Everything about a command is the same with limits: streams, terminal, status,
// signal, arguments.
func TestLimitsChangeNothingElse(t *testing.T) {
	r := newRunner(t)
	spec := proc.Spec{
		Argv: []string{"sh", "-c", `cat; echo "$0 $1"; stty size; kill -TERM $$`, "a b", "\xff"}, Env: testEnv(),
		TTY: &proc.Size{Rows: 3, Cols: 4}, Stdin: true, Limits: proc.Limits{OpenFiles: 64, AddressSpace: 1 << 30},
	}
	got := run(t, r, spec, strings.NewReader(""))
	if s := strings.ReplaceAll(got.stdout, "\r", ""); s != "a b \xff\n3 4\n" || got.status.Signal != 15 {
		t.Errorf("%q %+v", s, got.status)
	}
}
