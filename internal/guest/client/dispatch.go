package client

import "github.com/workberth/workberth/internal/guest/wire"

// next reads a frame and hands it to its call. An error is the end of the
// connection, except os.ErrDeadlineExceeded. It never waits for a caller. Who calls
// it holds the baton.
func (c *Conn) next() error {
	f, err := c.frames.Next()
	if err != nil {
		return err
	}
	return c.dispatch(f)
}

// dispatch takes over a frame and hands it to its call.
func (c *Conn) dispatch(f *wire.Frame) error {
	kind, id := f.Kind(), f.Stream()
	last := kind == wire.KindDone || kind == wire.KindFail

	c.mu.Lock()
	call := c.calls[id]
	if call != nil && last {
		delete(c.calls, id)
	}
	dead := c.err != nil
	c.mu.Unlock()

	switch {
	case dead:
		f.Release()
		return nil
	case call == nil:
		f.Release()
		return wire.Violation("%v frame on stream %d, which is not open", kind, id)
	}
	call.arrived = true
	if last {
		// Before the answer, so that who gets it can make the next call.
		<-c.slots
		call.finish(f)
		return nil
	}
	return call.take(f)
}
