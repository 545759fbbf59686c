package bridgetest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/bridgetest"
	"github.com/workberth/workberth/fsbridge/local"
)

// cable pretends that the core of a bridge, and streams, lie behind a connection that can be cut.
// All else is hidden. What it says after the cut is the truth, unless one of the lies is set.
type cable struct {
	base
	cut  chan struct{}
	lies cableLies
}

// cableLies are the faults of a cable.
type cableLies struct {
	// certain calls a write that may have happened unavailable.
	certain bool
	// success calls a write whose answer was lost a success.
	success bool
	// ends ends a cut stream as if the file had ended.
	ends bool
}

func (c *cable) Declares(p fsbridge.Capability) bool {
	return p == fsbridge.CapWriteStream || p == fsbridge.CapOpenReader || p == fsbridge.CapMounts
}

func (c *cable) dead() bool {
	select {
	case <-c.cut:
		return true
	default:
		return false
	}
}

func (c *cable) fail(op, p string, err error) error {
	return &fsbridge.PathError{Op: op, Path: p, Err: err}
}

func (c *cable) Stat(ctx context.Context, p string) (fsbridge.FileInfo, error) {
	if c.dead() {
		return fsbridge.FileInfo{}, c.fail("stat", p, fsbridge.ErrUnavailable)
	}
	return c.Bridge.Stat(ctx, p)
}

func (c *cable) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if c.dead() {
		return nil, c.fail("read", p, fsbridge.ErrUnavailable)
	}
	return c.Bridge.ReadFile(ctx, p)
}

func (c *cable) WriteFile(ctx context.Context, p string, data []byte) error {
	_, err := c.WriteStream(ctx, p, bytes.NewReader(data), fsbridge.WriteOptions{})
	return err
}

func (c *cable) WriteStream(ctx context.Context, p string, r io.Reader, o fsbridge.WriteOptions) (fsbridge.WriteResult, error) {
	if c.dead() {
		return fsbridge.WriteResult{}, c.fail("write", p, fsbridge.ErrUnavailable)
	}
	res, err := c.Bridge.WriteStream(ctx, p, &wire{c, r}, o)
	if !c.dead() {
		return res, err
	}
	// The answer is lost. Where the content did not arrive whole, nothing was written.
	if errors.Is(err, errCut) && !c.lies.success {
		return fsbridge.WriteResult{}, c.fail("write", p, fsbridge.ErrUnavailable)
	}
	switch {
	case c.lies.success:
		return res, nil
	case c.lies.certain:
		return fsbridge.WriteResult{}, c.fail("write", p, fsbridge.ErrUnavailable)
	}
	return fsbridge.WriteResult{}, c.fail("write", p, fsbridge.ErrOutcomeUnknown)
}

func (c *cable) OpenReader(ctx context.Context, p string) (io.ReadCloser, fsbridge.FileInfo, error) {
	if c.dead() {
		return nil, fsbridge.FileInfo{}, c.fail("read", p, fsbridge.ErrUnavailable)
	}
	r, i, err := c.Bridge.OpenReader(ctx, p)
	if err != nil {
		return nil, i, err
	}
	return &wireReader{c, r, p}, i, nil
}

var errCut = errors.New("cut")

// wire is content on its way in.
type wire struct {
	c *cable
	r io.Reader
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.c.dead() && !errors.Is(err, io.EOF) {
		return 0, errCut
	}
	return n, err
}

// wireReader is content on its way out.
type wireReader struct {
	c *cable
	io.ReadCloser
	p string
}

func (w *wireReader) Read(p []byte) (int, error) {
	if !w.c.dead() {
		return w.ReadCloser.Read(p)
	}
	if w.c.lies.ends {
		return 0, io.EOF
	}
	return 0, w.c.fail("read", w.p, fsbridge.ErrUnavailable)
}

// transportMutants are connections that tell the truth, and some that do not.
func transportMutants() []mutant {
	of := func(name string, lies cableLies, found, passes []string) mutant {
		return mutant{
			name: name, found: found, passes: passes,
			wrap: func(b *local.Bridge, ws string) fsbridge.Bridge {
				return &cable{base: base{b, ws}, cut: make(chan struct{}), lies: lies}
			},
			environment: func(e *bridgetest.Environment) {
				if c, ok := e.Bridge.(*cable); ok {
					e.Sever = sync.OnceFunc(func() { close(c.cut) })
				}
			},
		}
	}
	return []mutant{
		of("honest-cable", cableLies{}, nil, []string{
			"transport/cut-before", "transport/cut-during-write", "transport/cut-after-content", "transport/cut-during-writes",
			"transport/cut-during-read",
		}),
		of("cable-lost-answer-is-success", cableLies{success: true}, []string{"transport/cut-during-write"}, nil),
		of("cable-lost-answer-is-certain", cableLies{certain: true}, []string{"transport/cut-after-content"}, nil),
		of("cable-cut-is-end-of-file", cableLies{ends: true}, []string{"transport/cut-during-read"}, nil),
	}
}
