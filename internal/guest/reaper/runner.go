//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workberth/workberth/internal/guest/proc"
)

// Options are what a Runner is made with. The zero value runs commands anywhere
// and adopts nobody.
type Options struct {
	// Self is the program to start reapers with; it calls [Main] first thing.
	// Empty means the running program.
	Self string
	// ResolveDir opens the working directory of a command, so that files and
	// commands share one table of mounts. The file may be a mere handle (O_PATH);
	// the Runner closes it. Errors that match fsbridge.ErrOutsideRoot and
	// fs.ErrNotExist are told apart. Nil opens the name as it is, "" being the
	// working directory of this process.
	ResolveDir func(ctx context.Context, dir string) (*os.File, error)
	// Orphans looks after what killed reapers leave behind. Nil leaves that to a
	// search by marker, which proves less; then this process keeps its children
	// to itself and may have others than the Runner's.
	Orphans *Orphans
	// Tag names the session. Commands carry it in TagVar; see [Runner.Sweep].
	Tag string
	// NoSpare keeps no idle reapers: some MB and eight threads less, some
	// milliseconds more per start.
	NoSpare bool
	// Stderr is where a reaper that crashes says why; nil discards that. Reapers
	// hold it open as long as their trees live, kept ones longer than this process.
	Stderr *os.File
	// Logger is told what could not be done on the side; nil discards. It never
	// gets arguments or environments.
	Logger *slog.Logger
}

// Runner starts commands and ends their trees. It is safe for concurrent use.
type Runner struct {
	self       string
	resolveDir func(ctx context.Context, dir string) (*os.File, error)
	orphans    *Orphans
	reapers    *reapers
	tag        string
	stderr     *os.File
	log        *slog.Logger
	work       sync.WaitGroup // goroutines that end when their reaper does
	// answerBound is the constant of that name; tests have less patience.
	answerBound time.Duration
	stock       *stock

	mu       sync.Mutex
	closed   bool
	commands map[*command]struct{} // whose trees are not over
}

var _ proc.Runner = (*Runner)(nil)

// New returns a Runner. Close it.
func New(o Options) *Runner {
	r := &Runner{
		self: o.Self, resolveDir: o.ResolveDir, orphans: o.Orphans, reapers: newReapers(),
		tag: o.Tag, stderr: o.Stderr, log: o.Logger, answerBound: answerBound, commands: make(map[*command]struct{}),
	}
	if r.self == "" {
		r.self = selfExe
	}
	if r.resolveDir == nil {
		r.resolveDir = plainDir
	}
	if r.orphans != nil {
		r.reapers = r.orphans.reapers
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.stock = &stock{
		spawn: r.spawn, discard: r.discardReaper,
		work: &r.work, log: r.log, most: maxIdle,
	}
	if o.NoSpare {
		r.stock.most = 0
	}
	r.stock.refill()
	return r
}

// errClosed is why a command cannot be started any more.
var errClosed = errors.New("the runner is closed")

const (
	// startBound is how long a reaper may take to start a command, besides the
	// caller's ctx: something it needs hangs.
	startBound = 30 * time.Second
	// startNudge is the time after which a reaper is told to go on while it has not.
	startNudge = 200 * time.Millisecond
)

// Start starts a command; see [proc.Runner].
func (r *Runner) Start(ctx context.Context, spec proc.Spec, streams proc.IO) (proc.Process, error) {
	spec, err := complete(spec, r.tag)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error {
		return &proc.StartError{Reason: reasonOf(err), What: spec.Argv[0], Err: err}
	}
	if err := ctx.Err(); err != nil {
		return nil, failed(err)
	}
	dir, err := r.openDir(ctx, spec.Dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	p, err := newPlumbing(spec, streams)
	if err != nil {
		return nil, err
	}
	c := newCommand(r, spec, p, streams)
	if err := r.assign(c); err != nil {
		p.closeTheirs()
		p.closeOurs()
		return nil, failed(err)
	}
	defer r.work.Done()
	defer r.stock.refill()

	files, err := p.files(dir, spec.KeepDescendants)
	if err == nil {
		err = c.reaper.conn.send(msgStart, startOrder{c.turn, spec}.append(nil), files...)
	}
	p.closeTheirs()
	if err != nil {
		c.abandon()
		return nil, failed(fmt.Errorf("asking the reaper: %w", err))
	}
	if err := c.awaitStart(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// reasonOf classifies what keeps the helper itself from starting a command.
func reasonOf(err error) proc.StartReason {
	for _, errno := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, errno) {
			return proc.LimitReached
		}
	}
	return proc.Internal
}

// assign gives a command its reaper and lists it, so that from here on a
// Terminate of its marker finds it. It adds one to r.work for the caller.
func (r *Runner) assign(c *command) error {
	var reaper *child
	var err error
	shared, _ := divide(c.spec.Limits)
	if c.spec.Limits.CoreFileBytes == 0 { // who served others has given that up for ever
		reaper = r.stock.take(shared)
	}
	if reaper == nil {
		if reaper, err = r.spawn(); err != nil {
			return err
		}
	}
	reaper.turn++
	reaper.limits = shared
	c.reaper, c.turn = reaper, reaper.turn

	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.commands[c] = struct{}{}
		r.work.Add(1)
		r.work.Go(c.listen)
	}
	r.mu.Unlock()
	if closed {
		r.discardReaper(reaper)
		return errClosed
	}
	return nil
}

// forget takes a command whose tree is over off the list.
func (r *Runner) forget(c *command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.commands, c)
}

// Terminate ends the trees that carry the marker: those of this Runner's commands
// by their reapers, with proof; and what a search of the process table finds
// besides, left by an earlier helper or a killed reaper. Gone then means that
// nothing more is found, see [proc.Runner]. A marker that is none is an error, and
// nothing is touched. Zero grace means proc.DefaultGrace, a negative one none.
//
// Keeps SBX-09 to SBX-12: it takes no command, acts on this process table only,
// and touches no tree without the marker.
func (r *Runner) Terminate(ctx context.Context, marker string, grace time.Duration) (proc.TerminateResult, error) {
	if !validMarker(marker) {
		return proc.TerminateResult{Outcome: proc.Unknown}, fmt.Errorf("marker of %d bytes is not 32 hexadecimal digits", len(marker))
	}
	if grace == 0 {
		grace = proc.DefaultGrace
	}
	carried := proc.MarkerVar + "=" + marker
	all := r.each(r.listed(func(c *command) bool { return c.carries(carried) }), func(c *command) (proc.TerminateResult, error) {
		return c.Terminate(ctx, grace)
	})
	rest := search{carried: []string{carried}, reaping: []string{marker}, own: r.reapers}
	result, err := rest.end(ctx, grace)
	return merge(append(all, outcome{result, err}))
}

// Sweep ends what helpers of the session tag have left running that are gone
// themselves, kept trees included, and returns how many processes that were. The
// trees of live helpers, this one's included, are not touched: a helper is known by
// its name, [HelperName]. It finds what [Runner.Terminate]'s search would. Survivors
// are an error.
func (r *Runner) Sweep(ctx context.Context, tag string) (int, error) {
	if tag == "" {
		return 0, errors.New("no session is named")
	}
	s := search{carried: []string{TagVar + "=" + tag}, reaping: []string{tag}, spareLive: true, own: r.reapers}
	result, err := s.end(ctx, proc.DefaultGrace)
	if err == nil && result.Outcome == proc.Survivors {
		err = fmt.Errorf("%d processes do not end: %v", len(result.Pids), result.Pids)
	}
	if result.Killed > 0 {
		r.log.Info("ended what an earlier session left running", "tag", tag, "processes", result.Killed)
	}
	return result.Killed, err
}

// EndSession ends the helpers of the session tag that still live, however little their
// connection is worth, and all that they have started, as [Runner.Sweep] finds it. It
// returns how many processes that were. Survivors are an error.
func (r *Runner) EndSession(ctx context.Context, tag string) (int, error) {
	if tag == "" {
		return 0, errors.New("no session is named")
	}
	s := search{carried: []string{TagVar + "=" + tag}, reaping: []string{tag}, serving: []string{"--tag=" + tag}, own: r.reapers}
	result, err := s.end(ctx, proc.DefaultGrace)
	if err == nil && result.Outcome == proc.Survivors {
		err = fmt.Errorf("%d processes do not end: %v", len(result.Pids), result.Pids)
	}
	return result.Killed, err
}

// listed returns the commands that are not over and match.
func (r *Runner) listed(match func(*command) bool) (list []*command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.commands {
		if match(c) {
			list = append(list, c)
		}
	}
	return list
}

// outcome is what came of one of several terminations.
type outcome struct {
	result proc.TerminateResult
	err    error
}

// each does something to commands at the same time.
func (r *Runner) each(list []*command, do func(*command) (proc.TerminateResult, error)) []outcome {
	all := make([]outcome, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() { all[i].result, all[i].err = do(c) })
	}
	wg.Wait()
	return all
}

// merge is the result of several terminations: the worst one.
func merge(all []outcome) (proc.TerminateResult, error) {
	total := proc.TerminateResult{Outcome: proc.Gone}
	var errs []error
	for _, o := range all {
		total.Killed += o.result.Killed
		total.Pids = append(total.Pids, o.result.Pids...)
		errs = append(errs, o.err)
		switch {
		case o.result.Outcome == proc.Unknown:
			total.Outcome = proc.Unknown
		case o.result.Outcome == proc.Survivors && total.Outcome == proc.Gone:
			total.Outcome = proc.Survivors
		}
	}
	return total, errors.Join(errs...)
}

// Close refuses further commands and ends every tree that was not to be kept, each
// with its own grace, until ctx ends; what is left then is ended by its reaper
// alone. It waits for writers of output that block, too. Kept trees stay, with the reapers above them, as long as their
// environment does (in a process namespace of their own that is as long as its
// first process). It returns an error that names how many trees were not over. The
// process should end soon after: it no longer waits for kept trees' reapers.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stock.close()
	left := 0
	for _, o := range r.each(r.listed(func(c *command) bool { return !c.spec.KeepDescendants }), func(c *command) (proc.TerminateResult, error) {
		return c.Terminate(ctx, 0)
	}) {
		if o.err != nil || o.result.Outcome != proc.Gone {
			left++
		}
	}
	for _, c := range r.listed(func(*command) bool { return true }) {
		c.detach()
	}
	idle := make(chan struct{})
	go func() {
		r.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		return fmt.Errorf("output was not taken: %w", ctx.Err())
	}
	if left > 0 {
		return fmt.Errorf("%d process trees were not over in time", left)
	}
	return nil
}
