package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
)

func attachmentsHow(kind) string {
	return "Staging attachments in a workspace on the OpenSSH server of this machine, from the media store, as `attachments.WorkspacePreparer` " +
		"does before a turn: one after the other, hashed at both ends, never over an existing file. One of 2 GiB (the limit is raised) and " +
		"1,000 of 100 KiB, against `scp` of the large one, `scp` run once per file, and `scp -r` of all of them at once. Memory is what this " +
		"process grows by during a call, seen every few milliseconds, and what the helper on the server has had at most. At last the 1,000 " +
		"files are staged where they are already; the bytes sent then are counted at a relay."
}

// What is staged.
const (
	largeSize     = 2 << 30
	usualSize     = 64 << 20
	smallFiles    = 1000
	smallFileSize = 100 << 10
)

// What staging has to reach, and what it may take in bytes.
const (
	largeTimes  = 0.9 // scp's throughput
	smallTimes  = 5   // as fast as scp once per file
	stageMemory = 32 << 20
	repeatBytes = 1 << 20 // a hundredth of the files' content
)

// scpName is the peer's name in the report.
const scpName = "`scp`"

// stageTime bounds one call.
const stageTime = 10 * time.Minute

// attach measures the staging of attachments.
func attach(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.at(ctx, sshHost, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	dir, err := os.MkdirTemp(b.Dir, "media-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := mediastore.Open(mediastore.Options{Dir: filepath.Join(dir, "store"), Limit: largeSize})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a := &attaching{bench: b, box: x, dir: dir, store: store}
	usual, err1 := a.take(ctx, int64(b.pick(usualSize, 4<<20)))
	large, err2 := a.take(ctx, int64(b.pick(largeSize, 16<<20)))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if rows, err = a.against(ctx, large); err != nil {
		return rows, err
	}
	for _, fact := range []attachments.MediaFact{usual, large} {
		row, err := a.memory(ctx, fact)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	peak, err := residentPeak(x.sb.Info().Runtime["pid"])
	if err != nil {
		return rows, err
	}
	rows = append(rows, Row{Measured: "helper on the server, resident at its peak", Ours: series{peak}.quantity(Bytes), Budget: Budget{MaxWorst: maxHelperRSS}})
	more, err := a.small(ctx)
	return append(rows, more...), err
}

// attaching is a media store and a workspace for its files.
type attaching struct {
	bench *Bench
	*box
	dir   string // for files of this machine
	store *mediastore.Store
}

// take takes a large file in.
func (a *attaching) take(ctx context.Context, size int64) (attachments.MediaFact, error) {
	ref, err := a.store.IngestReader(ctx, &pattern{block: noise(1 << 20), left: size}, size, mediastore.Facts{Name: "large.bin"})
	return attachments.FactOf(ref), err
}

// stage stages files in the workspace of a sandbox and wants them to come to one outcome.
func (a *attaching) stage(x *box, want attachments.Outcome, files ...attachments.MediaFact) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := attachments.NewWorkspacePreparer(attachments.WorkspaceOptions{
			Store: a.store, CreateBridge: x.sb.Bridge, Limit: largeSize, Timeout: stageTime,
		})
		if err != nil {
			return err
		}
		note, err := p.Prepare(ctx, attachments.TurnFiles{Files: files})
		if err != nil {
			return err
		}
		for _, f := range note.Files {
			if f.Outcome != want {
				return fmt.Errorf("%s is %s, not %s", f.Fact.Name, f.Outcome, want)
			}
		}
		return nil
	}
}

// scp copies files of this machine, or a directory, to a name in the workspace.
func (a *attaching) scp(ctx context.Context, from, to string) error {
	return runQuiet(exec.CommandContext(ctx, "scp", "-q", "-r", "-F", a.bench.SSH.Config, from, sshHost+":"+a.at(to)))
}

// at is a path in the workspace.
func (a *attaching) at(names ...string) string {
	return filepath.Join(append([]string{a.workspace}, names...)...)
}

// clean deletes what either has copied.
func (a *attaching) clean(context.Context) error {
	return errors.Join(os.RemoveAll(a.at(attachments.InboundDir)), os.RemoveAll(a.at("copy")))
}

// against stages one file in turns with scp.
func (a *attaching) against(ctx context.Context, fact attachments.MediaFact) ([]Row, error) {
	source, _, err := a.store.LocalPath(ctx, fact.Ref)
	if err != nil {
		return nil, err
	}
	t := transfer{size: fact.Size}
	results, err := race(ctx, a.bench.pick(3, 1), 0,
		contender{name: "ours", run: a.stage(a.box, attachments.Staged, fact), after: a.clean},
		contender{name: scpName, after: a.clean, run: func(ctx context.Context) error {
			return t.arrived(a.at("copy"), a.scp(ctx, source, "copy"))
		}})
	if err != nil {
		return nil, err
	}
	return t.inThroughput(compareAll("one of "+sizeName(fact.Size), Speed, results, Budget{MinRatio: largeTimes}))
}

// memory is the row of what this process grows by while it stages a file.
func (a *attaching) memory(ctx context.Context, fact attachments.MediaFact) (Row, error) {
	grown, err := growth(ctx, a.stage(a.box, attachments.Staged, fact))
	return Row{
		Measured: "memory for one of " + sizeName(fact.Size), Ours: series{grown}.quantity(Bytes), Budget: Budget{MaxWorst: stageMemory},
	}, errors.Join(err, a.clean(ctx))
}

// small stages many files, against scp, and again.
func (a *attaching) small(ctx context.Context) ([]Row, error) {
	n := a.bench.pick(smallFiles, 20)
	paths, err := plant(a.dir, n, smallFileSize)
	if err != nil {
		return nil, err
	}
	facts := make([]attachments.MediaFact, 0, n)
	for _, path := range paths {
		ref, err := a.store.IngestFile(ctx, filepath.Join(a.dir, path), mediastore.Facts{Name: filepath.Base(path)})
		if err != nil {
			return nil, err
		}
		facts = append(facts, attachments.FactOf(ref))
	}
	ours, next, t := a.stage(a.box, attachments.Staged, facts...), 0, transfer{size: smallFileSize}
	results, err := race(ctx, a.bench.pick(5, 1), 0,
		contender{name: "ours", run: ours, after: a.clean},
		contender{name: scpName + ", once per file", per: a.bench.pick(10, 2), after: a.clean, run: func(ctx context.Context) error {
			next++
			return t.arrived(a.at("copy"), a.scp(ctx, filepath.Join(a.dir, paths[next%n]), "copy"))
		}},
		contender{name: scpName + " `-r` of all", after: a.clean, run: func(ctx context.Context) error {
			return t.arrived(a.at("copy", strings.TrimPrefix(paths[n-1], "tree")), a.scp(ctx, filepath.Join(a.dir, "tree"), "copy"))
		}})
	if err != nil {
		return nil, err
	}
	for _, all := range []int{0, 2} {
		results[all].times = results[all].times.over(n)
	}
	of := grouped(n) + " files of " + sizeName(smallFileSize)
	rows, err := compareAll(of+", for each", Speed, results, Budget{MinRatio: smallTimes})
	if err != nil {
		return rows, err
	}
	if err := ours(ctx); err != nil {
		return rows, err
	}
	more, err := a.again(ctx, of, facts)
	return append(rows, more...), err
}

// again stages files that are there, by way of the line that counts.
func (a *attaching) again(ctx context.Context, of string, facts []attachments.MediaFact) (rows []Row, err error) {
	x, err := a.bench.at(ctx, sshHostCounted, a.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.end(ctx)) }()
	line := a.bench.SSH.lines[sshHostCounted]
	stage := a.stage(x, attachments.Present, facts...)
	var sent series
	results, err := race(ctx, a.bench.pick(5, 1), 0, contender{name: "ours", run: func(ctx context.Context) error {
		before := line.traffic()
		err := stage(ctx)
		sent = append(sent, float64(line.traffic().since(before).sent))
		return err
	}})
	if err = errors.Join(err, results[0].err); err != nil {
		return nil, err
	}
	return []Row{
		{Measured: of + " that are there already, for each", Ours: results[0].times.over(len(facts)).quantity(Seconds)},
		{Measured: of + " that are there already, bytes sent", Ours: sent.quantity(Bytes), Budget: Budget{MaxWorst: repeatBytes}},
	}, err
}

// growth is by how many bytes this process grows while something runs.
func growth(ctx context.Context, run func(context.Context) error) (float64, error) {
	debug.FreeOSMemory()
	before, err := resident(os.Getpid())
	if err != nil {
		return 0, err
	}
	done, peak := make(chan struct{}), make(chan float64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		most := before
		for running := true; running; {
			select {
			case <-tick.C:
			case <-done:
				running = false
			}
			if now, err := resident(os.Getpid()); err == nil {
				most = max(most, now)
			}
		}
		peak <- most
	}()
	err = run(ctx)
	close(done)
	return <-peak - before, err
}
