package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// runQuiet runs a program, discards its output and quotes what it complains about.
func runQuiet(cmd *exec.Cmd) error {
	var complaint bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &complaint
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(complaint.String()))
	}
	return nil
}

// tail is the end of a text, on one line.
func tail(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return s
}

// once makes a contender's run out of a program to start. The command is made anew for each run.
func once(command func(ctx context.Context) *exec.Cmd) func(ctx context.Context) error {
	return func(ctx context.Context) error { return runQuiet(command(ctx)) }
}

// counter counts what is written and keeps nothing.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// pattern is a reader of so many bytes: a block, again and again.
type pattern struct {
	block []byte
	left  int64
	at    int
}

var _ io.Reader = (*pattern)(nil)

// noise makes a block of n bytes that do not compress, always the same.
func noise(n int) []byte {
	block := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range block {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		block[i] = byte(x >> 32)
	}
	return block
}

func (p *pattern) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(int64(len(b)), p.left)], p.block[p.at:])
	p.at = (p.at + n) % len(p.block)
	p.left -= int64(n)
	return n, nil
}

// jsonField returns a text field of a JSON object.
func jsonField(object, name string) (string, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		return "", err
	}
	text, ok := fields[name].(string)
	if !ok {
		return "", fmt.Errorf("no field %q in %s", name, tail(object))
	}
	return text, nil
}
