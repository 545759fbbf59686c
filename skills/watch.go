package skills

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"

	"github.com/workberth/workberth/fsbridge"
)

// Watcher tells when what Discover finds may have changed. Several changes are one signal: the
// receiver discovers again. What lies behind links that leave a root is not watched.
type Watcher struct {
	changed chan struct{}
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu  sync.Mutex
	err error
}

// Watch begins to watch the roots through the bridge. A root that does not exist is watched for
// once the folder that would hold it does. A bridge that cannot watch is an error that matches
// fsbridge.ErrUnsupported. The caller closes the watcher.
func Watch(ctx context.Context, b fsbridge.Bridge, roots []Root) (*Watcher, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &Watcher{changed: make(chan struct{}, 1), stop: stop}
	armed := make([]*rootWatch, len(roots))
	err := each(ctx, len(roots), len(roots), func(i int) (err error) {
		armed[i], err = armRoot(ctx, b, roots[i].Path)
		return err
	})
	if err != nil {
		stop()
		for _, a := range armed {
			a.close()
		}
		return nil, err
	}
	for i, r := range roots {
		w.wg.Go(func() { w.end(w.follow(ctx, b, r.Path, armed[i])) })
	}
	go func() {
		w.wg.Wait()
		close(w.changed)
	}()
	return w, nil
}

// Changed has a value when something may have changed since the last one was taken. It is closed
// when the watcher has ended; Err then tells why.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Err is why the watcher ended; nil after Close.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the watcher.
func (w *Watcher) Close() error {
	w.stop()
	w.wg.Wait()
	return nil
}

// end ends the whole watcher when the watch of one root has failed.
func (w *Watcher) end(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.stop()
}

func (w *Watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// rootWatch is the watch for one root: on the root, or on a folder that would hold it.
type rootWatch struct {
	fsbridge.Watch
	// next is the element below the watched folder that leads to the root; empty on the root.
	next string
}

func (r *rootWatch) close() {
	if r != nil {
		_ = r.Close() // nothing more is wanted of it
	}
}

// isNoFolder reports that there is nothing at a path, or something that may yet make room for a folder: a
// file, a link that leads nowhere or out.
func isNoFolder(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fsbridge.ErrOutsideRoot, syscall.ENOTDIR, syscall.ELOOP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// armRoot watches a root, or else the nearest folder above it. Nil is a root that cannot come to be
// where the bridge can see it.
func armRoot(ctx context.Context, b fsbridge.Bridge, root string) (*rootWatch, error) {
	next := ""
	for at := path.Clean(root); ; at = path.Dir(at) {
		watch, err := fsbridge.WatchDirectory(ctx, b, at, fsbridge.WatchOptions{Recursive: next == ""})
		switch {
		case err == nil && next != "":
			if info, err := b.Stat(ctx, path.Join(at, next)); err == nil && info.IsDir() {
				_ = watch.Close() // it has just been made
				return armRoot(ctx, b, root)
			}
			return &rootWatch{watch, next}, nil
		case err == nil:
			return &rootWatch{watch, next}, nil
		case at == "." || at == "/":
			if errors.Is(err, fsbridge.ErrOutsideRoot) || errors.Is(err, fs.ErrNotExist) {
				return nil, nil //nolint:nilnil // there is nothing to watch
			}
			return nil, err
		case !isNoFolder(err):
			return nil, err
		}
		next = path.Base(at)
	}
}

// follow passes the changes of one root on until ctx ends.
func (w *Watcher) follow(ctx context.Context, b fsbridge.Bridge, root string, r *rootWatch) error {
	for r != nil {
		again, err := w.pass(ctx, r)
		r.close()
		if !again {
			return err
		}
		if r, err = armRoot(ctx, b, root); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		w.signal() // what happened in between is not known
	}
	<-ctx.Done()
	return nil
}

// pass passes changes on. again says that the root has come or gone.
func (w *Watcher) pass(ctx context.Context, r *rootWatch) (again bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case e, ok := <-r.Events():
			switch {
			case !ok && ctx.Err() != nil:
				return false, nil
			case !ok && r.Err() != nil && !isNoFolder(r.Err()):
				return false, r.Err()
			case !ok:
				return true, nil
			case r.next == "":
				w.signal()
				if e.Path == "" && e.Kind == fsbridge.EventRemove {
					return true, nil
				}
			default:
				first, _, _ := strings.Cut(e.Path, "/")
				if first == r.next || e.Path == "" || e.Kind == fsbridge.EventOverflow {
					return true, nil
				}
			}
		}
	}
}
