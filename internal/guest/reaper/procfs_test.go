//go:build linux

package reaper

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

func TestParseStat(t *testing.T) {
	const rest = " 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 2 19"
	for _, tc := range []struct {
		text string
		want procStat
		ok   bool
	}{
		{"7 (sh) S 42" + " 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99", procStat{"sh", 42, 'S', 1}, true},
		{"7 (a) R 1 (b) Z) Z 42" + " 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0", procStat{"a) R 1 (b) Z", 42, 'Z', 3}, true},
		{"7 (\n) ) T 1" + " 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1", procStat{"\n) ", 1, 'T', 1}, true},
		{"", procStat{}, false},
		{"7 (sh", procStat{}, false},
		{"7 sh) S 42 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1", procStat{}, false},
		{"7 )sh( S 42 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1", procStat{}, false},
		{"7 (sh) S", procStat{}, false},
		{"7 (sh) SS 1" + rest, procStat{}, false},
		{"7 (sh) S x" + rest, procStat{}, false},
		{"7 (sh) S 42 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 x", procStat{}, false},
	} {
		got, err := parseStat([]byte(tc.text))
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("parseStat(%q) = %+v, %v; want %+v", tc.text, got, err, tc.want)
		}
	}
}

func TestDead(t *testing.T) {
	for _, tc := range []struct {
		stat procStat
		want bool
	}{
		{procStat{"x", 1, 'R', 1}, false},
		{procStat{"x", 1, 'T', 1}, false},
		{procStat{"x", 1, 'Z', 1}, true},
		{procStat{"x", 1, 'Z', 0}, true},
		{procStat{"x", 1, 'X', 1}, true},
		{procStat{"x", 1, 'Z', 2}, false}, // only its first thread has ended
	} {
		if got := tc.stat.dead(); got != tc.want {
			t.Errorf("%+v.dead() = %t", tc.stat, got)
		}
	}
}

// What is read of this process is true.
func TestProcOfThisProcess(t *testing.T) {
	self := os.Getpid()
	st, err := readStat(self)
	if err != nil || st.ppid != os.Getppid() || st.dead() {
		t.Errorf("stat %+v, %v; parent is %d", st, err, os.Getppid())
	}
	all, err := pids()
	if err != nil || !slices.Contains(all, self) {
		t.Errorf("%v, %v do not contain %d", all, err, self)
	}
	cmd := exec.Command("cat") //nolint:noctx // ends with its input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if list := allChildren(self); !slices.Contains(list, cmd.Process.Pid) {
		t.Errorf("children %v do not contain %d", list, cmd.Process.Pid)
	}
	if pid := cmd.Process.Pid; !ownedBy(pid, os.Geteuid()) || ownedBy(pid, os.Geteuid()+1) {
		t.Error("a child of this process is another user's, it says")
	}
	_ = in.Close()
	_ = cmd.Wait()
	if _, err := readStat(cmd.Process.Pid); err == nil {
		t.Log("the number " + strconv.Itoa(cmd.Process.Pid) + " is in use again")
	}
}

// A file longer than the first buffer is read whole.
func TestReadAll(t *testing.T) {
	name := t.TempDir() + "/f"
	want := make([]byte, 100_001)
	for i := range want {
		want[i] = byte(i)
	}
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(name); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := readSmall(name, 10); err != nil || !slices.Equal(got, want[:10]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
