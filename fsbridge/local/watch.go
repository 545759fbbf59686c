//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
	"golang.org/x/sys/unix"
)

const (
	// DefaultWatchDirs bounds the directories of one watch where the options say nothing.
	DefaultWatchDirs = 8192
	// watchBuffer is how many events wait for the receiver.
	watchBuffer = 1024
)

// Watch implements fsbridge.Watcher with inotify. Every change made after Watch has returned is
// reported or covered by an EventOverflow. Content of a directory that appears during a recursive
// watch is reported as created. A watch ends by Close, with ctx, with the bridge, when its guard
// refuses, and when the watched directory itself is moved, or removed and no longer in use by a
// process; Err tells which. Replacing a
// file atomically, as this bridge does, is an EventCreate of its name.
func (b *Bridge) Watch(ctx context.Context, path string, opts fsbridge.WatchOptions) (fsbridge.Watch, error) {
	if err := b.begin(ctx, opWatch, path); err != nil {
		return nil, err
	}
	defer b.end()
	w, err := b.watch(ctx, path, opts)
	if err != nil {
		return nil, pathError(opWatch, path, err)
	}
	return w, nil
}

func (b *Bridge) watch(ctx context.Context, path string, opts fsbridge.WatchOptions) (*watch, error) {
	if !b.tree.HasProc() {
		return nil, &fsbridge.UnsupportedError{Capability: fsbridge.CapWatch}
	}
	if opts.MaxDirs < 0 {
		return nil, fmt.Errorf("a limit is negative: %w", fsbridge.ErrInvalid)
	}
	if opts.MaxDirs == 0 {
		opts.MaxDirs = DefaultWatchDirs
	}
	h, err := b.tree.Open(path, rooted.Directory)
	if err != nil {
		return nil, err
	}
	h.Close()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, hint(fmt.Errorf("start a watch: %w", err), "the limit is fs.inotify.max_user_instances")
	}
	w := &watch{
		b: b, ctx: ctx, path: path, opts: opts,
		root: h.Stat, fd: fd, file: os.NewFile(uintptr(fd), "inotify"),
		dirs:   make(map[int32]*watched),
		events: make(chan fsbridge.Event, watchBuffer),
		done:   make(chan struct{}),
	}
	err = w.add("", false)
	if err == nil {
		err = b.register(w)
	}
	if err != nil {
		_ = w.file.Close()
		return nil, err
	}
	w.unhook = context.AfterFunc(ctx, w.wake)
	go w.run()
	return w, nil
}

// watch is a running watch. Its goroutine owns everything above mu.
type watch struct {
	b    *Bridge
	ctx  context.Context // it governs the watch, as the interface says
	path string
	opts fsbridge.WatchOptions

	root rooted.Stat // the watched directory; no handle is held, which would keep it from ending
	fd   int         // inotify, used by the goroutine only
	file *os.File    // the same, for reads that can be woken
	dirs map[int32]*watched
	read uint64 // bytes of events read so far
	full bool   // an overflow was reported and the receiver has not caught up

	events chan fsbridge.Event
	done   chan struct{} // closed when the goroutine has ended
	unhook func() bool

	mu     sync.Mutex
	closed bool
	err    error
}

var _ fsbridge.Watch = (*watch)(nil)

func (w *watch) Events() <-chan fsbridge.Event { return w.events }

func (w *watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the watch and waits until it has ended.
func (w *watch) Close() error {
	w.stop()
	<-w.done
	return nil
}

func (w *watch) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake()
}

// wake makes the goroutine look up from its read.
func (w *watch) wake() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

// run reads events until the watch ends.
func (w *watch) run() {
	err := w.loop()
	w.unhook()
	w.b.deregister(w)
	_ = w.file.Close()
	w.mu.Lock()
	if !w.closed && err != nil {
		w.err = pathError(opWatch, w.path, err)
	}
	w.mu.Unlock()
	close(w.events)
	close(w.done)
}

func (w *watch) loop() error {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if w.ended() {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = w.ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := w.b.check(w.ctx); err != nil {
			return err
		}
		if err := w.batch(buf[:n]); err != nil {
			return err
		}
	}
}

func (w *watch) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// send hands an event over, or remembers that some were lost. The last slot of the channel is kept
// for saying so.
func (w *watch) send(e fsbridge.Event) {
	if len(w.events) < cap(w.events)-1 {
		w.full = false
		w.events <- e // there is room: nobody else sends
		return
	}
	if !w.full {
		w.full = true
		w.events <- fsbridge.Event{Kind: fsbridge.EventOverflow, Time: e.Time}
	}
}

// register makes the bridge end the watch when it is closed.
func (s *state) register(w *watch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches == nil {
		return fmt.Errorf("the bridge is closed: %w", fs.ErrClosed)
	}
	s.watches[w] = struct{}{}
	return nil
}

func (s *state) deregister(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// endWatches ends every watch and waits for them. Err is then fs.ErrClosed.
func (s *state) endWatches() {
	s.mu.Lock()
	running := s.watches
	s.watches = nil
	s.mu.Unlock()
	for w := range running {
		w.mu.Lock()
		if !w.closed {
			w.err = pathError(opWatch, w.path, fmt.Errorf("the bridge is closed: %w", fs.ErrClosed))
		}
		w.mu.Unlock()
		_ = w.Close()
	}
}
