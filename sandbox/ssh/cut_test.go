package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/sshclient"
	"github.com/workberth/workberth/internal/sshtest"
	"github.com/workberth/workberth/sandbox"
)

// cutVar marks the processes of a test; its value tells the round.
const cutVar = "BERTH_CUT_TEST"

// carrying returns the processes that have the variable in their environment.
func carrying(t testing.TB, value string) (pids []int) {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range list {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, data...), []byte("\x00"+cutVar+"="+value)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// cutRounds is how often a connection is cut, at most, and how long that may go on:
// BERTH_SSH_CUTS chooses a number, whatever it takes.
func cutRounds(t testing.TB) (most int, within time.Duration) {
	t.Helper()
	if s := os.Getenv("BERTH_SSH_CUTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("BERTH_SSH_CUTS=%q is no number of rounds", s)
		}
		return n, 20 * time.Minute
	}
	if testing.Short() {
		return 15, 6 * time.Second
	}
	return 200, 14 * time.Second
}

// The connection is cut at any moment of a mixed load, again and again: no file is torn, an
// acknowledged change is there and a refused one is not, commands whose end nobody saw end
// as unknown, and after the next Ensure nothing of the old generation runs. SBX-07 RWS-03
func TestCutAtAnyMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{})
	r.patience(25 * time.Minute)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	ws := t.TempDir()
	for i := range listed {
		if err := os.WriteFile(filepath.Join(ws, fmt.Sprintf("l-%02d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := newLoad(t, ws)
	sb := r.ensure(ws)
	most, within := cutRounds(t)
	begun := time.Now()
	round := 0
	for ; round < most && time.Since(begun) < within; round++ {
		stop := load.start(r.ctx, sb, fmt.Sprintf("%d-%d", os.Getpid(), round))
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond) //sleep: any moment is what is tested
		r.server.CutConnections()
		select {
		case <-sb.Done():
		case <-r.ctx.Done():
			t.Fatal("the sandbox did not end with its connection")
		}
		stop()
		sb = r.ensure(ws)
		if left := carrying(t, fmt.Sprintf("%d-%d;", os.Getpid(), round)); len(left) > 0 {
			t.Errorf("round %d: processes %v are left", round, left)
		}
		load.verify(round)
		if got := r.run(sb, "/bin/echo", "works"); got != "works\n" {
			t.Errorf("round %d: afterwards a command says %q", round, got)
		}
		if t.Failed() {
			t.Fatalf("log of the backend:\n%s", r.log)
		}
	}
	t.Logf("%d cuts", round)
	load.report()
}

// patience replaces the time that a rig has.
func (r *rig) patience(d time.Duration) {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	r.ctx = ctx
}

// aliveConfig is a keepalive that notices a silent server within aliveBound.
func aliveConfig() []string { return []string{"ServerAliveInterval 1", "ServerAliveCountMax 2"} }

// aliveBound is the time after which it must have been noticed: three ticks, and slack for a
// busy machine.
const aliveBound = 3*time.Second + 3*time.Second

// C099: a server that falls silent is noticed within the keepalive's bound; what was under
// way ends truthfully; once it answers again, so does Ensure, and nothing is left running.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{}, aliveConfig()...)
	ws := t.TempDir()
	load := newLoad(t, ws)
	rounds := 2
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		sb := r.ensure(ws)
		stop := load.start(r.ctx, sb, fmt.Sprintf("%d-s%d", os.Getpid(), round))
		time.Sleep(100 * time.Millisecond) //sleep: the load is to be under way
		r.server.Pause()
		begun := time.Now()
		select {
		case <-sb.Done():
		case <-time.After(aliveBound):
			t.Errorf("not noticed within %v", aliveBound)
		}
		if took := time.Since(begun); took < time.Second {
			t.Errorf("given up after %v", took)
		}
		r.server.Resume()
		stop()
		next := r.ensure(ws)
		if left := carrying(t, fmt.Sprintf("%d-s%d;", os.Getpid(), round)); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
		load.verify(round)
		r.run(next, "/bin/true")
	}
}

// A server that is slow, but not for too long, is not given up. C099
func TestSlowPeerIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{}, "ServerAliveInterval 1", "ServerAliveCountMax 4")
	sb := r.ensure(t.TempDir())
	r.server.Pause()
	time.Sleep(2 * time.Second) //sleep: the pause is what is meant
	r.server.Resume()
	if got := r.run(sb, "/bin/echo", "same"); got != "same\n" {
		t.Errorf("got %q", got)
	}
	select {
	case <-sb.Done():
		t.Errorf("the sandbox has ended: %v", sb.Err())
	default:
	}
}

// The load of a test: every worker has files of its own, so that it knows what must stand in
// them.
type load struct {
	t       *testing.T
	ws      string
	workers []worker
	bigs    commandLoad
}

// worker makes changes until an error comes.
type worker interface {
	work(ctx context.Context, fb fsbridge.Bridge) error
	verify(ws string) error
}

// listed is how many files lie in the directory that is listed, beside those of workers.
const listed = 40

func newLoad(t *testing.T, ws string) *load {
	l := &load{t: t, ws: ws}
	for i, size := range []int{8, 4 << 10, 300 << 10, 3 << 20} {
		l.workers = append(l.workers,
			&writer{name: fmt.Sprintf("w-%d", i), size: size},
			&writer{name: fmt.Sprintf("dir/s-%d", i), size: size, streamed: true})
	}
	for i, size := range []int{16, 40 << 10} {
		l.workers = append(l.workers, &appender{name: fmt.Sprintf("a-%d", i), size: size})
	}
	l.workers = append(l.workers, &lister{least: -1})
	return l
}

// start sets everything to work on a sandbox. stop waits for the ends, which the end of the
// sandbox brings.
func (l *load) start(ctx context.Context, sb sandbox.Sandbox, round string) (stop func()) {
	l.t.Helper()
	fb, err := sb.Bridge(ctx, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range l.workers {
		wg.Go(func() {
			for {
				if err := w.work(ctx, fb); err != nil {
					if !errors.Is(err, fsbridge.ErrOutcomeUnknown) && !errors.Is(err, fsbridge.ErrUnavailable) &&
						!errors.Is(err, fsbridge.ErrNotCurrent) && !errors.Is(err, sandbox.ErrGone) {
						l.t.Errorf("a failure that tells nothing of the connection: %v", err)
					}
					return
				}
			}
		})
	}
	for i := range 3 {
		wg.Go(func() {
			for n := 0; l.bigs.run(ctx, l.t, sb, i, fmt.Sprintf("%s;%d-%d", round, i, n)); n++ {
			}
		})
	}
	return wg.Wait
}

// verify compares the files with what the workers know.
func (l *load) verify(round int) {
	l.t.Helper()
	for _, w := range l.workers {
		if err := w.verify(l.ws); err != nil {
			l.t.Errorf("round %d: %v", round, err)
		}
	}
	err := filepath.WalkDir(l.ws, func(p string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(p), ".berth-") {
			err = fmt.Errorf("a temporary file is left: %s", p)
		}
		return err
	})
	if err != nil {
		l.t.Errorf("round %d: %v", round, err)
	}
}

// report tells how much was cut, and wants it to be something.
func (l *load) report() {
	acknowledged, unknown := 0, 0
	for _, w := range l.workers {
		if w, ok := w.(*writer); ok {
			acknowledged += w.acknowledged
			unknown += w.unknown
		}
	}
	l.bigs.mu.Lock()
	defer l.bigs.mu.Unlock()
	l.t.Logf("%d writes acknowledged, %d with an unknown outcome; %d commands ended, %d unknown", acknowledged, unknown, l.bigs.ended, l.bigs.unknown)
	if acknowledged == 0 || unknown == 0 || l.bigs.unknown == 0 {
		l.t.Error("nothing was interrupted: the test has shown nothing")
	}
}

// writer replaces a file by one version after the other.
type writer struct {
	name     string
	size     int
	streamed bool

	version               int          // of the last attempt
	may                   map[int]bool // versions that may stand there
	acknowledged, unknown int
}

// text is a version: every eight bytes tell it.
func (w *writer) text(version int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%08d", version), w.size/8)
}

func (w *writer) work(ctx context.Context, fb fsbridge.Bridge) (err error) {
	w.version++
	data := w.text(w.version)
	if w.streamed {
		_, err = fsbridge.WriteStream(ctx, fb, w.name, bytes.NewReader(data), fsbridge.WriteOptions{})
	} else {
		err = fb.WriteFile(ctx, w.name, data)
	}
	switch {
	case err == nil:
		w.may = map[int]bool{w.version: true}
		w.acknowledged++
	case errors.Is(err, fsbridge.ErrOutcomeUnknown):
		if w.may == nil {
			w.may = map[int]bool{0: true} // it may still be missing
		}
		w.may[w.version] = true
		w.unknown++
	}
	return err
}

func (w *writer) verify(ws string) error {
	data, err := os.ReadFile(filepath.Join(ws, w.name))
	version := 0
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if len(data) < 8 {
			return fmt.Errorf("%s has %d bytes", w.name, len(data))
		}
		if version, err = strconv.Atoi(string(data[:8])); err != nil || !bytes.Equal(data, w.text(version)) {
			return fmt.Errorf("%s is torn: %d bytes that begin with %q", w.name, len(data), data[:8])
		}
	}
	if w.may == nil {
		w.may = map[int]bool{0: true}
	}
	if !w.may[version] {
		return fmt.Errorf("%s has version %d, and it may have %v", w.name, version, w.may)
	}
	w.may = map[int]bool{version: true}
	return nil
}

// appender appends records to a file.
type appender struct {
	name string
	size int

	next    int
	sure    []int // records that stand there, in order
	unknown bool  // and perhaps one more, next-1
}

func (a *appender) record(n int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", n), a.size/8) }

func (a *appender) work(ctx context.Context, fb fsbridge.Bridge) error {
	if len(a.sure)*a.size > 4<<20 { // enough; a new file
		if err := fb.WriteFile(ctx, a.name, nil); err != nil {
			a.unknown = errors.Is(err, fsbridge.ErrOutcomeUnknown)
			a.next = -1
			return err
		}
		a.sure = nil
	}
	n := a.next
	a.next++
	err := fsbridge.AppendFile(ctx, fb, a.name, a.record(n))
	a.unknown = errors.Is(err, fsbridge.ErrOutcomeUnknown)
	if err == nil {
		a.sure = append(a.sure, n)
	}
	return err
}

func (a *appender) verify(ws string) error {
	data, err := os.ReadFile(filepath.Join(ws, a.name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var want []byte
	for _, n := range a.sure {
		want = append(want, a.record(n)...)
	}
	switch {
	case bytes.Equal(data, want):
		a.next++
	case a.next < 0 && a.unknown && len(data) == 0:
		a.sure = nil
	case a.next > 0 && a.unknown && bytes.Equal(data, append(want, a.record(a.next-1)...)):
		a.sure = append(a.sure, a.next-1)
	default:
		return fmt.Errorf("%s has %d bytes, acknowledged are %d, one more unknown: %t, of %d each", a.name, len(data), len(want), a.unknown, a.size)
	}
	a.next = max(a.next, len(a.sure)) + 1
	a.unknown = false
	return nil
}

// lister lists and reads; it never gets half an answer.
type lister struct{ least int }

func (l *lister) work(ctx context.Context, fb fsbridge.Bridge) error {
	entries, err := fsbridge.ReadDirectory(ctx, fb, ".")
	if err == nil && l.least < 0 {
		l.least = 0
		for _, e := range entries {
			if strings.HasPrefix(e.Name, "l-") {
				l.least++
			}
		}
	}
	if err == nil && len(entries) < l.least {
		return fmt.Errorf("%d entries, there are at least %d", len(entries), l.least)
	}
	if errors.Is(err, fsbridge.ErrOutcomeUnknown) {
		return fmt.Errorf("a listing changes nothing and says: %v", err)
	}
	return err
}

func (l *lister) verify(string) error { return nil }

// commandLoad runs commands that start trees.
type commandLoad struct {
	mu             sync.Mutex
	ended, unknown int
}

// run runs one command and reports whether another one makes sense.
func (c *commandLoad) run(ctx context.Context, t *testing.T, sb sandbox.Sandbox, kind int, mark string) bool {
	script := []string{
		// A tree that gets away from session and group, and ends by itself.
		`setsid sh -c 'sleep 300 & sleep 0.02' & wait; echo done`,
		// One that stays behind, as its owner wants.
		`setsid sleep 300 >/dev/null 2>&1 & sleep 0.05; echo done`,
		// One that runs until it is ended, and does not want to be.
		`trap '' TERM HUP; setsid sh -c 'trap "" TERM HUP; sleep 300; :' & sleep 300; echo done`,
	}[kind]
	var out bytes.Buffer
	res, err := sandbox.Run(ctx, sb, sandbox.Command{
		Argv: []string{"/bin/sh", "-c", script}, KeepDescendants: kind == 1, Grace: 10 * time.Millisecond,
	}, sandbox.Env{cutVar: mark}, sandbox.RunOptions{Timeout: time.Minute, Stdout: &out})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		if !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, sandbox.ErrUnavailable) && !isStartError(err) {
			t.Errorf("command %d: %v", kind, err)
		}
		return false
	case res.Status.Unknown:
		if res.Status.Reason == "" {
			t.Errorf("command %d: an unknown end without a reason: %+v", kind, res.Status)
		}
		c.unknown++
		return false
	case res.Status.Code != 0 || out.String() != "done\n":
		t.Errorf("command %d: %+v, output %q", kind, res.Status, &out)
	}
	c.ended++
	return true
}

func isStartError(err error) bool {
	var start *sandbox.StartError
	return errors.As(err, &start)
}

// C097: sessions that a connection does not admit come over further ones, and nobody loses
// what runs.
func TestFewSessions(t *testing.T) {
	for most, boxes := range map[int]int{1: 4, 3: 12} {
		t.Run(fmt.Sprintf("MaxSessions %d", most), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sshtest.Options{MaxSessions: most, MaxStartups: "100"})
			failed := make(chan error, 2*boxes)
			var wg sync.WaitGroup
			for i := range boxes {
				ws := t.TempDir()
				wg.Go(func() { failed <- r.together(ws, i) })
			}
			wg.Wait()
			close(failed)
			for err := range failed {
				if err != nil {
					t.Error(err)
				}
			}
			if t.Failed() {
				t.Logf("server:\n%s", r.server.Log())
			}
		})
	}
}

// together makes a sandbox, runs a command in it, and reads meanwhile.
func (r *rig) together(ws string, i int) error {
	sb, err := r.Ensure(r.ctx, r.spec(ws, func(s *sandbox.Spec) { s.Session = fmt.Sprintf("many-%d", i) }))
	if err != nil {
		return err
	}
	defer sb.Close()
	fb, err := sb.Bridge(r.ctx, nil)
	if err != nil {
		return err
	}
	if err := fb.WriteFile(r.ctx, "f", fmt.Append(nil, i)); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		var out bytes.Buffer
		res, err := sandbox.Run(r.ctx, sb, sandbox.Command{Argv: []string{"/bin/sh", "-c", "sleep 0.5; cat f"}}, nil, sandbox.RunOptions{Stdout: &out})
		if err == nil && (res.Status != sandbox.ExitStatus{} || out.String() != fmt.Sprint(i)) {
			err = fmt.Errorf("command %d: %+v, output %q", i, res.Status, &out)
		}
		ended <- err
	}()
	often := time.NewTicker(10 * time.Millisecond)
	defer often.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-often.C:
		}
		if data, err := fb.ReadFile(r.ctx, "f"); err != nil || string(data) != fmt.Sprint(i) {
			return fmt.Errorf("read %d: %q, %w", i, data, err)
		}
	}
}

// C097: a server that turns strangers away at the door is asked again.
func TestFewStartups(t *testing.T) {
	t.Parallel()
	r := newRig(t, sshtest.Options{MaxStartups: "2"})
	failed := make(chan error, 6)
	for i := range cap(failed) {
		b := open(t, filepath.Join(t.TempDir(), "state"), nil) // connections of its own
		ws := t.TempDir()
		go func() {
			sb, err := b.Ensure(r.ctx, r.spec(ws))
			if err == nil {
				err = sb.Close()
			}
			if err != nil {
				err = fmt.Errorf("backend %d: %w", i, err)
			}
			failed <- err
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
			if errors.Is(err, sshclient.ErrUnreachable) {
				t.Logf("server:\n%s", r.server.Log())
			}
		}
	}
}
