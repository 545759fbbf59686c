package skills_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/local"
	"github.com/workberth/workberth/skills"
)

// roundTrip is the delay of the link in these tests.
const roundTrip = 50 * time.Millisecond

// far is a bridge behind a link with delay; its methods are those that discovery may use.
type far struct {
	*local.Bridge
	calls *atomic.Int64
	lacks fsbridge.Capability
	// breaks, when positive, is the number of the call at which the link is cut.
	breaks int64
}

func (f far) send() error {
	n := f.calls.Add(1)
	time.Sleep(roundTrip) //sleep: the delay of the link, virtual in a bubble
	if f.breaks > 0 && n >= f.breaks {
		return &fsbridge.PathError{Op: "read", Path: "x", Err: fsbridge.ErrUnavailable}
	}
	return nil
}

func (f far) Declares(c fsbridge.Capability) bool { return c != f.lacks }

func (f far) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	if err := f.send(); err != nil {
		return fsbridge.FileInfo{}, err
	}
	return f.Bridge.Stat(ctx, p)
}

func (f far) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if err := f.send(); err != nil {
		return nil, err
	}
	return f.Bridge.ReadFile(ctx, p)
}

func (f far) ReadFileWithSource(ctx context.Context, p string) (fsbridge.SourcedFile, error) {
	if err := f.send(); err != nil {
		return fsbridge.SourcedFile{}, err
	}
	return f.Bridge.ReadFileWithSource(ctx, p)
}

func (f far) ReadRange(ctx context.Context, p string, off, n int64) ([]byte, error) {
	if err := f.send(); err != nil {
		return nil, err
	}
	return f.Bridge.ReadRange(ctx, p, off, n)
}

func (f far) ReadDirectory(ctx context.Context, p string) ([]fsbridge.DirEntry, error) {
	if err := f.send(); err != nil {
		return nil, err
	}
	return f.Bridge.ReadDirectory(ctx, p)
}

func (f far) HashFile(ctx context.Context, p string) (fsbridge.FileHash, error) {
	if err := f.send(); err != nil {
		return fsbridge.FileHash{}, err
	}
	return f.Bridge.HashFile(ctx, p)
}

func (f far) Walk(ctx context.Context, p string, o fsbridge.WalkOptions, fn func(fsbridge.WalkEntry) error) error {
	if err := f.send(); err != nil {
		return err
	}
	return f.Bridge.Walk(ctx, p, o, fn)
}

// slow is a prober behind the same link.
type slow struct{ calls *atomic.Int64 }

func (s slow) Probe(ctx context.Context, ask skills.Request) (skills.Facts, error) {
	s.calls.Add(1)
	time.Sleep(roundTrip) //sleep: the delay of the link, virtual in a bubble
	return has{Platform: "linux"}.Probe(ctx, ask)
}

// many makes a workspace with n skills, some with files, one behind a link.
func many(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"store/linked/SKILL.md": good("linked"), "store/linked/x.txt": "x", "skills/linked": "-> ../store/linked"}
	for i := range n - 1 {
		name := fmt.Sprintf("s%04d", i)
		files["skills/"+name+"/SKILL.md"] = asking(name, fmt.Sprintf("{requires: {bins: [tool%d]}}", i%50))
		if i%20 == 0 {
			files["skills/"+name+"/scripts/run.sh"] = "echo"
		}
	}
	write(t, dir, files)
	return dir
}

// SKL-02 SKL-04: 2,000 skills cost at most five round trips in sequence, one of them for all
// programs: what is measured is virtual time, so it counts nothing but the longest chain of calls.
func TestRoundTrips(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 300
	}
	dir := many(t, n)
	synctest.Test(t, func(t *testing.T) {
		calls, probes := &atomic.Int64{}, &atomic.Int64{}
		b := far{Bridge: bridge(t, dir), calls: calls}
		begin := time.Now()
		d, err := skills.Discover(t.Context(), b, workspace(), slow{probes}, skills.Options{})
		if err != nil {
			t.Fatal(err)
		}
		trips := int(time.Since(begin) / roundTrip)
		t.Logf("%d calls, %d round trips in sequence", calls.Load(), trips)
		if trips > 5 || probes.Load() != 1 {
			t.Errorf("%d round trips in sequence, want at most 5; %d probes, want 1", trips, probes.Load())
		}
		if len(d.Skills) != n || len(d.Binaries) != 50 || int(calls.Load()) < n {
			t.Errorf("%d skills, %d programs, %d calls", len(d.Skills), len(d.Binaries), calls.Load())
		}
		for _, s := range d.Skills {
			if s.Rejected() || (s.Name == "linked") != (s.RealFile != "") {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// A bridge without Walk is searched level by level, one without ranges or pinned reads is read
// as it can be, and the same skills are found.
func TestLackingBridges(t *testing.T) {
	dir := many(t, 50)
	for _, lacks := range []fsbridge.Capability{fsbridge.CapWalk, fsbridge.CapReadRange, fsbridge.CapReadFileWithSource, fsbridge.CapHashFile} {
		synctest.Test(t, func(t *testing.T) {
			b := far{Bridge: bridge(t, dir), calls: &atomic.Int64{}, lacks: lacks}
			begin := time.Now()
			d, err := skills.Discover(t.Context(), b, workspace(), slow{&atomic.Int64{}}, skills.Options{})
			if trips := int(time.Since(begin) / roundTrip); err != nil || len(d.Skills) != 50 || trips > 10 {
				t.Errorf("without %s: %d skills in %d round trips, %v", lacks, len(d.Skills), trips, err)
			}
		})
	}
	if _, err := skills.Discover(t.Context(), bare{bridge(t, dir)}, workspace(), nil, skills.Options{}); !errors.Is(err, fsbridge.ErrUnsupported) {
		t.Errorf("without everything: %v", err)
	}
}

// bare is a bridge without capabilities.
type bare struct{ fsbridge.Bridge }

// SKL-08: a link that is cut anywhere is an error of the whole, never a shorter list.
func TestCutLink(t *testing.T) {
	dir := many(t, 30)
	total := int64(0)
	for at := int64(1); total == 0 || at <= total; at++ {
		synctest.Test(t, func(t *testing.T) {
			calls := &atomic.Int64{}
			d, err := skills.Discover(t.Context(), far{Bridge: bridge(t, dir), calls: calls, breaks: at}, workspace(), nil, skills.Options{})
			if err == nil {
				if calls.Load() >= at {
					t.Errorf("cut at call %d: no error", at)
				}
				total = calls.Load()
				return
			}
			if !errors.Is(err, fsbridge.ErrUnavailable) || d.Skills != nil {
				t.Errorf("cut at call %d: %v, %d skills", at, err, len(d.Skills))
			}
		})
	}
	if total < 30 {
		t.Errorf("%d calls in all", total)
	}
}

// A prober that fails is an error of the whole.
func TestProberFails(t *testing.T) {
	want := errors.New("no answer")
	_, err := skills.Discover(t.Context(), bridge(t, many(t, 3)), workspace(), failing{want}, skills.Options{})
	if !errors.Is(err, want) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Probe(context.Context, skills.Request) (skills.Facts, error) {
	return skills.Facts{}, f.err
}

// endless is a bridge whose hashes take as long as they are waited for.
type endless struct{ *local.Bridge }

func (endless) HashFile(ctx context.Context, _ string) (fsbridge.FileHash, error) {
	<-ctx.Done()
	return fsbridge.FileHash{}, ctx.Err()
}

// Files that grow faster than they are hashed hold up nobody for ever: what there is is told, without
// hashes; a caller that gives up gets an error.
func TestHashTime(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"skills/x/SKILL.md": good("x"), "skills/x/a": "a", "skills/x/b": "b"})
	synctest.Test(t, func(t *testing.T) {
		b := endless{bridge(t, dir)}
		d, err := skills.Discover(t.Context(), b, workspace(), nil, skills.Options{Parallel: 1})
		if err != nil || len(d.Skills) != 1 || d.Skills[0].Rejected() || len(d.Skills[0].Resources) != 2 || len(d.Notices) != 1 || !strings.Contains(d.Notices[0].Text, "2 files of skills are not hashed") {
			t.Errorf("%+v, %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d, err := skills.Discover(ctx, b, workspace(), nil, skills.Options{}); !errors.Is(err, context.DeadlineExceeded) || d.Skills != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
