package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/workberth/workberth/sandbox"
)

// defaultJSONOutput is what exec --json keeps of each output where no limit is
// given, in bytes.
const defaultJSONOutput = 16 << 20

// output is one output of a command on its way to w. Without a limit everything
// passes through. With one the head passes through, and the tail follows at the
// end behind a line that says how much is missing. Without w both are kept.
type output struct {
	w    io.Writer
	keep *sandbox.OutputBuffer // nil without a limit
	head int64                 // bytes to pass through at once

	mu   sync.Mutex
	sent int64
	err  error
}

// newOutput passes on to w; a limit of zero means none.
func newOutput(w io.Writer, limit int64) *output {
	if limit == 0 {
		return &output{w: w}
	}
	limit = min(limit, sandbox.MaxOutputLimit)
	return &output{w: w, keep: sandbox.NewOutputBuffer(int(limit)), head: limit / 2}
}

// newCapture keeps head and tail of limit bytes.
func newCapture(limit int64) *output { return newOutput(nil, limit) }

// Write takes the next bytes. An error of the underlying writer ends the command.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pass := p
	if o.keep != nil {
		if _, err := o.keep.Write(p); err != nil {
			return 0, err
		}
		pass = p[:max(0, min(int64(len(p)), o.head-o.sent))]
	}
	if o.w == nil || len(pass) == 0 {
		return len(p), nil
	}
	n, err := o.w.Write(pass)
	o.sent += int64(n)
	if err != nil {
		o.err = err
		return n, err
	}
	return len(p), nil
}

// finish passes on what is left.
func (o *output) finish() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.w == nil || o.keep == nil {
		return o.err
	}
	out := o.keep.Output()
	rest := out.Tail
	if out.Dropped > 0 {
		if _, err := fmt.Fprintf(o.w, "\n[berth: %d bytes left out]\n", out.Dropped); err != nil {
			return err
		}
	} else {
		rest = out.Bytes()[o.sent:]
	}
	_, err := o.w.Write(rest)
	return err
}

// json is what was kept.
func (o *output) json() textJSON {
	out := o.keep.Output()
	return newTextJSON(out.Bytes(), out.Total, out.Dropped)
}
