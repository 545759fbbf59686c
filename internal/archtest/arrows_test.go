package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// room is a line of the house plan: the packages that match at may import, besides themselves,
// the packages of this module that match may, and nothing else of it. A pattern is a directory;
// "/..." at its end means everything below it too. The first line that matches a package counts.
type room struct {
	at      string
	may     []string
	apart   bool   // the directories below at are rooms of their own and may not import each other
	outside bool   // may import third-party modules; golang.org/x/sys is always allowed
	because string // what the rule protects
}

// guestParts are what is linked into the guest helper.
func guestParts() []string {
	return []string{"fsbridge", "fsbridge/local", "internal/rooted", "internal/guest/...", "internal/version"}
}

// house lists the rooms from the ground up. Import arrows point to lines further up.
func house() []room {
	return []room{
		{at: "fsbridge", because: "it is the vocabulary everything else speaks"},
		{at: "gitenv", because: "it is pure"},
		{at: "internal/version"},
		{at: "internal/archtest", because: "it reads the source and uses none of it"},
		{at: "internal/rooted", may: []string{"fsbridge"}, because: "it is part of the guest helper"},
		{at: "fsbridge/local", may: []string{"fsbridge", "internal/rooted"}, because: "it is part of the guest helper"},
		{at: "internal/guest/...", may: guestParts(), because: "it is part of the guest helper"},
		{at: "cmd/berth-guest", may: guestParts(), because: "the helper is a static program of 2 to 3 MB"},
		{at: "internal/helperbin", may: []string{"internal/version"}, because: "it finds a file and knows nothing of what it does"},
		{at: "fsbridge/bridgetest", may: []string{"fsbridge"}, outside: true, because: "others plug their own bridge into the suite"},
		{at: "fsbridge/guestfs", may: []string{"fsbridge", "internal/guest/..."}, because: "a bridge knows no sandbox"},
		{at: "fsbridge/...", apart: true, may: []string{"fsbridge"}, outside: true, because: "a bridge knows no sandbox"},
		{at: "sandbox", may: []string{"fsbridge", "internal/guest/proc"}, because: "the interface knows no backend"},
		{at: "sandbox/backendtest", may: []string{"sandbox", "fsbridge", "fsbridge/bridgetest"}, outside: true, because: "others plug their own backend into the suite"},
		{at: "internal/guestbox", may: []string{"sandbox", "fsbridge", "fsbridge/guestfs", "internal/guest/..."}, because: "it is what all backends share"},
		{at: "internal/keeper", may: []string{"sandbox", "fsbridge/...", "internal/guestbox", "internal/guest/...", "internal/rooted", "internal/osthread"}, because: "it is what backends of this machine share and knows none of them"},
		{at: "internal/hostmount", may: []string{"sandbox", "fsbridge", "internal/osthread"}, because: "it decides what appears in a sandbox and knows no backend"},
		{at: "internal/container", may: []string{"sandbox", "fsbridge", "fsbridge/guestfs", "internal/guestbox", "internal/keeper", "internal/hostmount", "internal/guest/...", "internal/helperbin", "internal/tail", "internal/version"}, because: "it is what containers share and knows no engine's protocol"},
		{at: "internal/asuser", because: "it is for tests of every package"},
		{at: "internal/sshtest", outside: true, because: "it is for tests of every package"},
		{at: "internal/helpertest", may: []string{"internal/helperbin"}, because: "it is for tests of every package"},
		{at: "internal/container/byssh", may: []string{"internal/osthread", "internal/tail"}, because: "it runs ssh and knows no engine"},
		{at: "internal/container/containertest", may: []string{"sandbox", "fsbridge", "sandbox/backendtest", "internal/container", "internal/asuser", "internal/helperbin", "internal/sshtest"}, because: "it tests what containers share"},
		{at: "internal/container/...", apart: true, may: []string{"internal/container", "internal/container/enginetest"}, outside: true, because: "an engine's client knows no sandbox"},
		{at: "sandbox/...", apart: true, may: []string{"sandbox", "fsbridge/...", "internal/guestbox", "internal/keeper", "internal/hostmount", "internal/container/...", "internal/guest/...", "internal/rooted", "internal/helperbin", "internal/version", "internal/seccomp", "internal/cgroup", "internal/osthread", "internal/tail", "internal/sshclient"}, outside: true, because: "a backend knows no other backend and nobody above it"},
		{at: "internal/seccomp", outside: true, because: "it translates a profile and knows nobody who uses it"},
		{at: "internal/tail", because: "it keeps bytes and knows nobody who wants them"},
		{at: "internal/sshclient", may: []string{"internal/tail"}, outside: true, because: "it connects and knows nobody who wants to"},
		{at: "internal/osthread", because: "it is about threads and nothing else"},
		{at: "internal/cgroup", because: "it bounds processes and knows no sandbox"},
		{at: "internal/config", may: []string{"sandbox", "fsbridge"}, outside: true, because: "it reads a file and starts nothing"},
		{at: "internal/owner/...", may: []string{"sandbox", "fsbridge/...", "internal/guest/...", "internal/guestbox", "internal/helperbin", "internal/version", "gitenv"}, because: "it is above the sandboxes and below the command"},
		{at: "remoteworkspace/sshhost/...", may: []string{"sandbox", "fsbridge"}, outside: true, because: "it serves sandboxes and knows no backend and no command line"},
		{at: "internal/sandboxtest", may: []string{"sandbox/...", "fsbridge/...", "internal/helpertest", "internal/sshtest", "remoteworkspace/sshhost"}, outside: true, because: "it is for tests of what is above the sandboxes"},
		{at: "attachments/mediastore", may: []string{"fsbridge"}, outside: true, because: "it keeps contents and knows nobody who wants them"},
		{at: "attachments", may: []string{"attachments/mediastore", "fsbridge"}, because: "it knows bridges and nobody who makes them, and no binding"},
		{at: "skills", may: []string{"fsbridge"}, outside: true, because: "it knows bridges and no sandbox"},
		{at: "skills/probe", may: []string{"fsbridge", "sandbox", "skills"}, because: "it knows sandboxes and no backend"},
		{at: "skills/mirror", may: []string{"fsbridge", "sandbox", "skills"}, because: "it knows sandboxes and no backend"},
		{at: "remoteworkspace", may: []string{"attachments", "fsbridge", "skills"}, because: "it knows bridges and nobody who makes them"},
		{at: "cmd/berth/...", may: []string{"attachments/...", "fsbridge/...", "sandbox/...", "gitenv", "internal/...", "remoteworkspace/...", "skills/..."}, outside: true},
		{at: "integration/...", may: []string{"attachments/...", "fsbridge/...", "sandbox/...", "gitenv", "internal/...", "cmd/...", "remoteworkspace/...", "skills/..."}, outside: true},
	}
}

// matches reports whether pattern covers the directory.
func matches(pattern, dir string) bool {
	if base, below := strings.CutSuffix(pattern, "/..."); below {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return dir == pattern
}

// sameChild reports whether two directories are in the same one directly below a pattern.
func sameChild(pattern, a, b string) bool {
	prefix := strings.TrimSuffix(pattern, "...")
	child := func(dir string) string {
		first, _, _ := strings.Cut(strings.TrimPrefix(dir, prefix), "/")
		return first
	}
	return child(a) == child(b)
}

// roomOf returns the line of the plan for a directory.
func roomOf(rooms []room, dir string) (room, bool) {
	for _, r := range rooms {
		if matches(r.at, dir) {
			return r, true
		}
	}
	return room{}, false
}

// isStandard reports whether an import path belongs to the standard library.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// checkImport returns what is wrong with one import by a package in the room here, or "".
func checkImport(here room, dir, path string) string {
	why := here.because
	if why == "" {
		why = "arrows point down only"
	}
	if path == module || strings.HasPrefix(path, module+"/") {
		to := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		if matches(here.at, to) && (!here.apart || sameChild(here.at, dir, to)) {
			return ""
		}
		for _, pattern := range here.may {
			if matches(pattern, to) {
				return ""
			}
		}
		return fmt.Sprintf("%s imports %s: %s", dir, to, why)
	}
	if isStandard(path) || here.outside || path == "golang.org/x/sys" || strings.HasPrefix(path, "golang.org/x/sys/") {
		return ""
	}
	return fmt.Sprintf("%s imports %s: only the standard library and golang.org/x/sys may be used here: %s", dir, path, why)
}

// TestArrows keeps the import arrows of the house. Test files are free: a suite is above what it
// tests.
func TestArrows(t *testing.T) {
	rooms := house()
	placed := map[string]bool{}   // directories that have been looked up
	occupied := map[string]bool{} // rooms somebody lives in
	for _, f := range openRepo(t).goFiles(t) {
		here, ok := roomOf(rooms, f.dir)
		occupied[here.at] = true
		if !ok && !placed[f.dir] {
			t.Errorf("%s has no place in the house: add it to the plan in internal/archtest/arrows_test.go", f.dir)
		}
		placed[f.dir] = true
		if !ok || f.isTest() {
			continue
		}
		for _, path := range f.imports {
			if problem := checkImport(here, f.dir, path); problem != "" {
				t.Errorf("%s: %s", f.name, problem)
			}
		}
	}
	for _, r := range rooms {
		if !occupied[r.at] {
			t.Errorf("the plan has a room %s that no package lives in", r.at)
		}
	}
}

func TestCheckImport(t *testing.T) {
	rooms := []room{
		{at: "low"},
		{at: "mid/leaf", may: []string{"low"}, because: "leaves are light"},
		{at: "mid/...", may: []string{"low", "mid/leaf"}, outside: true},
		{at: "high/...", apart: true},
	}
	for _, tc := range []struct {
		dir, path string
		says      string // "" means allowed
	}{
		{"low", "fmt", ""},
		{"low", "golang.org/x/sys/unix", ""},
		{"low", "golang.org/x/sysfake", "only the standard library"},
		{"low", module + "/mid", "low imports mid: arrows point down only"},
		{"low", module, "arrows point down only"},
		{"mid", module + "/low", ""},
		{"mid", module + "/lower", "mid imports lower"},
		{"mid", "example.org/x", ""},
		{"mid/leaf", "example.org/x", "leaves are light"},
		{"mid/leaf", module + "/mid", "mid/leaf imports mid: leaves are light"},
		{"mid/leafy", module + "/mid/leaf", ""},
		{"mid/a", module + "/mid/b", ""},
		{"high/a", module + "/high/a/x", ""},
		{"high/a/x", module + "/high/a", ""},
		{"high/a", module + "/high/b", "high/a imports high/b"},
		{"high/a", module + "/high/ab", "high/a imports high/ab"},
	} {
		here, ok := roomOf(rooms, tc.dir)
		if !ok {
			t.Fatalf("roomOf(%s) found nothing", tc.dir)
		}
		got := checkImport(here, tc.dir, tc.path)
		if (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
			t.Errorf("checkImport(%s, %s) = %q, want %q", tc.dir, tc.path, got, tc.says)
		}
	}
	if here, ok := roomOf(rooms, "middle"); ok {
		t.Errorf("roomOf(middle) = %s, want no room", here.at)
	}
}

// TestGuestIsSelfContained follows the helper's imports all the way down: third-party modules
// cannot slip in behind one that is allowed.
func TestGuestIsSelfContained(t *testing.T) {
	out := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/berth-guest")
	lines := bufio.NewScanner(bytes.NewReader(out))
	count := 0
	for lines.Scan() {
		path := lines.Text()
		count++
		if strings.HasPrefix(path, "golang.org/x/sys/") {
			continue
		}
		ours := false
		for _, pattern := range append(guestParts(), "cmd/berth-guest") {
			ours = ours || matches(module+"/"+pattern, path)
		}
		if !ours {
			t.Errorf("the guest helper links %s; it must stay small and run anywhere", path)
		}
	}
	if count < 2 {
		t.Errorf("go list named %d packages; this test is looking in the wrong place", count)
	}
}

// maxGuest is where the helper stops being small, in bytes: it is copied to every remote host and
// mapped into every sandbox.
const maxGuest = 5 << 20

// TestGuestIsSmall links the helper as a release does.
func TestGuestIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	helper := filepath.Join(t.TempDir(), "berth-guest")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", helper, "./cmd/berth-guest")
	build.Dir = openRepo(t).root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(helper)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the helper has %d bytes", info.Size())
	if info.Size() > maxGuest {
		t.Errorf("the helper has %d bytes, more than %d: see what it links with go list -deps ./cmd/berth-guest", info.Size(), maxGuest)
	}
}

// goList runs go list for the platform that releases are made for.
func goList(t *testing.T, args ...string) []byte {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	list.Dir = openRepo(t).root
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}
