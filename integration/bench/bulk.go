package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
)

// bulkHow tells what bulk does.
func bulkHow(k kind) string {
	return "One file, read through `OpenReader` into nothing and written through `WriteStream` (which also hashes it) to a new name " +
		"that is deleted again. Against " + k.choose(
		"the "+k.program("exec")+" program that runs `cat` with a pipe to us, and "+k.program("cp")+" to and from a file of this machine",
		"a plain `bwrap` that runs `cat` with a pipe to us, and against the "+k.program("exec")+" program that runs `cat`") +
		". The file is in the page cache; nothing is flushed to the disk by either side."
}

// What a container has to be faster than the engine's program with cat.
const (
	bulkReadTimes  = 4
	bulkWriteTimes = 2
)

const andCat = " and `cat`"

// bulk measures throughput.
func bulk(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	rivals, done, err := b.rivals(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	t := transfer{dir: x.workspace, bridge: fb, size: int64(b.pick(256, 16)) << 20, block: noise(1 << 20)}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	read := []contender{{name: "ours", run: t.read}}
	write := []contender{{name: "ours", run: t.write, after: t.discard}}
	for _, r := range rivals {
		read = append(read, contender{name: r.name + andCat, run: t.readFrom(r)})
		write = append(write, contender{name: r.name + andCat, run: t.writeTo(r), after: t.discard})
	}
	if b.kind().contained {
		c := rivals[0].container
		name := b.kind().program("cp") + " program"
		out := filepath.Join(b.Dir, "copied")
		read = append(read, contender{name: name, run: t.copyOut(c, out), after: func(context.Context) error { return os.Remove(out) }})
		write = append(write, contender{name: name, run: t.copyIn(c), after: t.discard})
	}
	for _, m := range []struct {
		verb       string
		times      float64
		contenders []contender
	}{{"read", bulkReadTimes, read}, {"write", bulkWriteTimes, write}} {
		more, err := t.race(ctx, m.verb, b.pick(b.kind().fewer(11, 7), 2), []Budget{b.kind().faster(m.times)}, m.contenders)
		if err != nil {
			return rows, err
		}
		if rows = append(rows, more...); b.Engine == nil {
			rows = append(rows, lacksEngine(Row{Measured: more[0].Measured, Ours: more[0].Ours}, b.kind().program("exec")+" program"+andCat))
		}
	}
	return rows, nil
}

// transfer moves one large file.
type transfer struct {
	dir    string // the workspace on this machine
	bridge fsbridge.Bridge
	size   int64
	block  []byte
}

// race lets the first contender race against the others, and makes a row for each of those; the
// budgets are those against the first of them.
func (t transfer) race(ctx context.Context, verb string, rounds int, budgets []Budget, contenders []contender) ([]Row, error) {
	results, err := race(ctx, rounds, 1, contenders...)
	if err != nil {
		return nil, err
	}
	return t.inThroughput(compareAll(fmt.Sprintf("%s %d MiB", verb, t.size>>20), Speed, results, budgets...))
}

// inThroughput turns the times of rows into throughputs.
func (t transfer) inThroughput(rows []Row, err error) ([]Row, error) {
	for i := range rows {
		rows[i].Ours, rows[i].Theirs = rows[i].Ours.throughput(t.size), rows[i].Theirs.throughput(t.size)
	}
	return rows, err
}

// content is what the file holds.
func (t transfer) content() io.Reader { return &pattern{block: t.block, left: t.size} }

// prepare makes the file to read.
func (t transfer) prepare() error {
	f, err := os.Create(filepath.Join(t.dir, "big"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, t.content())
	return errors.Join(err, f.Close())
}

// complete wants all bytes.
func (t transfer) complete(n int64, err error) error {
	if err == nil && n != t.size {
		err = fmt.Errorf("%d bytes of %d arrived", n, t.size)
	}
	return err
}

func (t transfer) read(ctx context.Context) error {
	r, _, err := fsbridge.OpenReader(ctx, t.bridge, "big")
	if err != nil {
		return err
	}
	n, err := io.Copy(&counter{}, r)
	return errors.Join(t.complete(n, err), r.Close())
}

func (t transfer) write(ctx context.Context) error {
	res, err := fsbridge.WriteStream(ctx, t.bridge, "new", t.content(), fsbridge.WriteOptions{})
	return t.complete(res.Size, err)
}

// readFrom reads what a program writes.
func (t transfer) readFrom(r rival) func(context.Context) error {
	return func(ctx context.Context) error {
		var seen counter
		cmd := r.command(ctx, nil, "cat", "big")
		cmd.Stdout = &seen
		err := runQuiet(cmd)
		return t.complete(seen.n, err)
	}
}

// writeTo feeds a program.
func (t transfer) writeTo(r rival) func(context.Context) error {
	return func(ctx context.Context) error {
		err := runQuiet(r.command(ctx, t.content(), "sh", "-c", "cat > new"))
		return t.arrived(filepath.Join(t.dir, "new"), err)
	}
}

// copyOut has the engine copy the file out of a container, to a file of this machine.
func (t transfer) copyOut(c *container, to string) func(context.Context) error {
	return func(ctx context.Context) error {
		return t.arrived(to, runQuiet(c.engine.command(ctx, "cp", c.id+":/workspace/big", to)))
	}
}

// copyIn has the engine copy a file of this machine into a container.
func (t transfer) copyIn(c *container) func(context.Context) error {
	return func(ctx context.Context) error {
		err := runQuiet(c.engine.command(ctx, "cp", filepath.Join(t.dir, "big"), c.id+":/workspace/new"))
		return t.arrived(filepath.Join(t.dir, "new"), err)
	}
}

// arrived wants a file of this machine to have all bytes.
func (t transfer) arrived(path string, err error) error {
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return t.complete(info.Size(), nil)
}

// discard deletes what was written.
func (t transfer) discard(context.Context) error { return os.Remove(filepath.Join(t.dir, "new")) }
