package sshhost

import (
	"bytes"
	"errors"
	"io"

	"github.com/workberth/workberth/fsbridge"
)

// finish publishes what was streamed.
func (w *writer) finish() error {
	if w.pipe == nil {
		return nil
	}
	if w.cut || w.err != nil || w.removed {
		w.pipe.CloseWithError(io.ErrUnexpectedEOF)
	} else {
		w.pipe.Close()
	}
	w.pipe = nil
	return <-w.stream
}

// unstream turns the writer into one with a scratch file: what was streamed is published,
// read back, and goes on from there. Where that fails after something was streamed or kept,
// the writer has failed: a part of its file is missing.
func (w *writer) unstream() error {
	if w.copy != nil {
		return nil
	}
	started := w.pipe != nil || len(w.ahead) > 0
	err := w.toScratch()
	if err != nil && started {
		w.err = err
	}
	return err
}

func (w *writer) toScratch() error {
	streamed := w.pipe != nil
	if err := w.finish(); err != nil {
		return err
	}
	copied, err := w.f.s.conn.srv.spool.create()
	if err != nil {
		return err
	}
	if w.keep || streamed {
		if err := w.load(copied); err != nil {
			copied.close()
			return err
		}
	}
	w.copy = copied
	for off := range w.ahead {
		if _, err := copied.WriteAt(w.unput(off), off); err != nil {
			return err
		}
	}
	return nil
}

// load reads the file's content into the scratch file.
func (w *writer) load(to *scratch) error {
	r, _, err := fsbridge.OpenReader(w.f.ctx, w.f.b, w.path)
	if err != nil {
		return err
	}
	defer r.Close()
	return to.fill(r)
}

// Close publishes the file.
func (w *writer) Close() error {
	w.f.unhang(w)
	defer w.f.give()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.publish()
	for off := range w.ahead {
		w.unput(off)
	}
	if w.copy != nil {
		w.copy.close()
	}
	if err == nil && w.times != nil && !w.removed {
		err = w.f.touch(w.path, *w.times)
	}
	return w.f.did("write", w.path, w.moved, 0, err)
}

// errCut is the outcome of a file whose client vanished.
var errCut = errors.New("the client left before the file was complete; nothing was changed")

// publish brings the file in the sandbox to what it should be.
func (w *writer) publish() error {
	if w.err == nil && !w.cut && w.copy == nil && len(w.ahead) > 0 {
		// A hole: what is missing was never sent. The file gets zeros there.
		w.err = w.unstream()
	}
	err := w.finish()
	switch {
	case w.removed:
		return nil
	case w.cut || w.err != nil:
		if w.created {
			w.undo()
		}
		if w.err != nil {
			return w.err
		}
		if w.dirty {
			return errCut
		}
		return nil
	case err != nil, !w.dirty:
		return err
	case w.copy != nil:
		_, err = fsbridge.WriteStream(w.f.ctx, w.f.b, w.path, w.copy.content(), fsbridge.WriteOptions{NoParents: true, Size: w.copy.size})
		return err
	case w.next == 0 && !w.created:
		_, err = fsbridge.WriteStream(w.f.ctx, w.f.b, w.path, bytes.NewReader(nil), fsbridge.WriteOptions{NoParents: true})
		return err
	}
	return nil
}
