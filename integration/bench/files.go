package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
)

// filesHow tells what files does.
func filesHow(k kind) string {
	return "Through the bridge: describe a file, read one of 4 KiB, write one of 4 KiB (atomically, over an existing one), list a " +
		"directory of 100 files. Against a bare echo of 16 bytes over the same connection to the helper, and against one call of the " +
		k.program("exec") + " program per operation (`stat`, `cat`, `cat >` and `mv`, `ls -la`) on the same directory, which is what " +
		"is done without a helper" + k.choose(".", "; the design asks 400 and, for the write, 150 times of the container backends.")
}

// echoer is a sandbox that can bounce bytes off the helper.
type echoer interface {
	Echo(ctx context.Context, data []byte) ([]byte, error)
}

// fileOp is one operation, and the command that does the same.
type fileOp struct {
	name    string
	budget  Budget  // against the echo
	times   float64 // what a container has to be faster than a call of the engine's program
	run     func(ctx context.Context) error
	command []string
	stdin   []byte
}

// fileOps are the operations on a workspace made by fillFiles.
func fileOps(fb fsbridge.Bridge, content []byte) []fileOp {
	return []fileOp{
		{name: "stat", budget: Budget{MaxRatio: 1.6}, times: 400, command: []string{"stat", "f"}, run: func(ctx context.Context) error {
			info, err := fb.Stat(ctx, "f")
			if err == nil && info.Size != int64(len(content)) {
				err = fmt.Errorf("stat says %d bytes", info.Size)
			}
			return err
		}},
		{name: "read 4 KiB", budget: Budget{MaxRatio: 1.6}, times: 400, command: []string{"cat", "f"}, run: func(ctx context.Context) error {
			data, err := fb.ReadFile(ctx, "f")
			if err == nil && !bytes.Equal(data, content) {
				err = errors.New("read gave other bytes")
			}
			return err
		}},
		{
			name: "write 4 KiB, atomic", times: 150, command: []string{"sh", "-c", "cat > .w.tmp && mv .w.tmp w"}, stdin: content,
			run: func(ctx context.Context) error { return fb.WriteFile(ctx, "w", content) },
		},
		{name: "list 100", times: 400, command: []string{"ls", "-la", "d"}, run: func(ctx context.Context) error {
			entries, err := fsbridge.ReadDirectory(ctx, fb, "d")
			if err == nil && len(entries) != 100 {
				err = fmt.Errorf("list gave %d entries", len(entries))
			}
			return err
		}},
	}
}

// fillFiles makes what fileOps work on.
func fillFiles(x *box, content []byte) error {
	if err := errors.Join(x.file("f", content), x.file("w", content)); err != nil {
		return err
	}
	for i := range 100 {
		if err := x.file(filepath.Join("d", fmt.Sprintf("file-%03d", i)), content[:i]); err != nil {
			return err
		}
	}
	return nil
}

// files measures single operations.
func files(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	content := noise(4096)
	if err := fillFiles(x, content); err != nil {
		return nil, err
	}
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	echo, ok := x.sb.(echoer)
	if !ok {
		return nil, fmt.Errorf("a sandbox of backend %s cannot echo", b.Backend.Name())
	}
	word := []byte("sixteen bytes...")
	bounce := contender{name: "echo", per: 1, run: func(ctx context.Context) error {
		_, err := echo.Echo(ctx, word)
		return err
	}}
	ops := fileOps(fb, content)
	for _, op := range ops {
		// In turns call by call: how long the processor was idle before decides how long it takes
		// to wake, and both are to find it alike.
		ours := contender{name: op.name, per: 1, run: op.run}
		results, err := race(ctx, b.pick(5000, 10), b.pick(500, 2), ours, bounce)
		if err != nil {
			return rows, err
		}
		row, err := compare(Row{Measured: op.name, Budget: op.budget}, Cost, results[0], results[1])
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	more, err := b.filesByProgram(ctx, x, ops)
	return append(rows, more...), err
}

// filesByProgram compares with one call of the engine's program per operation.
func (b *Bench) filesByProgram(ctx context.Context, x *box, ops []fileOp) (rows []Row, err error) {
	c, err := b.container(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove(ctx)) }()
	for _, op := range ops {
		row := Row{Measured: op.name, Budget: b.kind().faster(op.times)}
		if c == nil {
			rows = append(rows, lacksEngine(row, b.kind().program("exec")+" program"))
			continue
		}
		peer := contender{name: c.rival().name, run: once(func(ctx context.Context) *exec.Cmd {
			var in io.Reader
			if op.stdin != nil {
				in = bytes.NewReader(op.stdin)
			}
			return c.program(ctx, in, op.command...)
		})}
		results, err := race(ctx, b.pick(40, 3), 1, contender{name: op.name, per: 20, run: op.run}, peer)
		if err != nil {
			return rows, err
		}
		row, err = compare(row, Speed, results[0], results[1])
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
