package bench

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	for _, tc := range []struct {
		stat string
		want process
		ok   bool
	}{
		{"7 (sleep) S 3 7 7 0 -1", process{7, 3, "sleep"}, true},
		{"7 (a) b (c) R 4 7", process{7, 4, "a) b (c"}, true},
		{"7 (cut", process{}, false},
		{"7 (cut) S", process{}, false},
		{"7 ) x ( S 3", process{}, false},
		{"", process{}, false},
	} {
		got, ok := parseStat(7, tc.stat)
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("parseStat(%q) = %+v %t", tc.stat, got, ok)
		}
	}
}

func TestBelow(t *testing.T) {
	all := []process{{1, 0, "init"}, {5, 1, "us"}, {6, 5, "child"}, {7, 6, "grandchild"}, {8, 1, "other"}}
	got := below(all, 5)
	if len(got) != 2 || got[0].pid != 6 || got[1].pid != 7 {
		t.Errorf("below 5: %+v", got)
	}
}

// TestRunningSeesProcesses looks for a real process and for its end.
func TestRunningSeesProcesses(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000.25")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n, err := running("sleep", "1000.25")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || n != 1 {
		t.Errorf("running: %d, %v", n, err)
	}
	if n, err := running("sleep", "1000.25"); err != nil || n != 0 {
		t.Errorf("running after its end: %d, %v", n, err)
	}
	if m, err := memoryOf(os.Getpid()); err != nil || m.rss < 1<<20 || m.pss > m.rss {
		t.Errorf("memory of this process: %+v, %v", m, err)
	}
	if _, err := memoryOf(-1); err == nil {
		t.Error("memory of no process")
	}
}

func TestExpectComparesEveryByte(t *testing.T) {
	text := strings.Repeat("line\n", 20)
	for size := 1; size < 12; size++ {
		e := &expect{line: []byte("line\n")}
		for rest := text; rest != ""; {
			k := min(size, len(rest))
			_, _ = e.Write([]byte(rest[:k]))
			rest = rest[k:]
		}
		if e.wrong || e.n != len(text) {
			t.Errorf("in pieces of %d: %d bytes, wrong %t", size, e.n, e.wrong)
		}
	}
	e := &expect{line: []byte("line\n")}
	_, _ = e.Write([]byte("line\nlime\nline\n"))
	if !e.wrong {
		t.Error("a wrong byte was not seen")
	}
}

func TestPatternHasItsSize(t *testing.T) {
	data, err := io.ReadAll(&pattern{block: []byte("abc"), left: 8})
	if err != nil || string(data) != "abcabcab" {
		t.Errorf("%q, %v", data, err)
	}
	if a, b := noise(64), noise(64); string(a) != string(b) || strings.Count(string(a), "\x00") > 8 {
		t.Errorf("noise %q and %q", a, b)
	}
}
