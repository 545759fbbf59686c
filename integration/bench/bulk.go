package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
)

const bulkHow = "One file, read through `OpenReader` into nothing and written through `WriteStream` (which also hashes it) to a new name that is deleted\n" +
	"again. Against a plain `bwrap` that runs `cat` with a pipe to us, and against the `docker exec` program that runs `cat`. The file is in\n" +
	"the page cache; nothing is flushed to the disk by either side."

const engineCat = "`docker exec` program and `cat`"

// bulk measures throughput.
func bulk(ctx context.Context, b *Bench) (rows []Row, err error) {
	plain, err := newBwrap()
	if err != nil {
		return nil, err
	}
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	c, err := b.container(ctx, x.workspace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove(ctx)) }()
	t := transfer{dir: x.workspace, bridge: fb, size: int64(b.pick(256, 16)) << 20, block: noise(1 << 20)}
	if err := t.prepare(); err != nil {
		return nil, err
	}

	into := []string{"sh", "-c", "cat > new"}
	read := []contender{
		{name: "ours", run: t.read},
		{name: "plain `bwrap` and `cat`", run: t.readFrom(func(ctx context.Context) *exec.Cmd {
			return plain.command(ctx, t.dir, "cat", "big")
		})},
	}
	write := []contender{
		{name: "ours", run: t.write, after: t.discard},
		{name: "plain `bwrap` and `cat`", after: t.discard, run: t.writeTo(func(ctx context.Context, in io.Reader) *exec.Cmd {
			cmd := plain.command(ctx, t.dir, into...)
			cmd.Stdin = in
			return cmd
		})},
	}
	if c != nil {
		read = append(read, contender{name: engineCat, run: t.readFrom(func(ctx context.Context) *exec.Cmd {
			return c.program(ctx, "cat", "big")
		})})
		write = append(write, contender{name: engineCat, after: t.discard, run: t.writeTo(func(ctx context.Context, in io.Reader) *exec.Cmd {
			return c.programWithInput(ctx, in, into...)
		})})
	}
	readRows, err := t.rows(ctx, b, "read", read)
	if err != nil {
		return readRows, err
	}
	writeRows, err := t.rows(ctx, b, "write", write)
	return append(readRows, writeRows...), err
}

// transfer moves one large file.
type transfer struct {
	dir    string // the workspace on this machine
	bridge fsbridge.Bridge
	size   int64
	block  []byte
}

// rows lets the first contender race against the others.
func (t transfer) rows(ctx context.Context, b *Bench, verb string, contenders []contender) (rows []Row, err error) {
	name := fmt.Sprintf("%s %d MiB", verb, t.size>>20)
	results, err := race(ctx, b.pick(11, 2), 1, contenders...)
	if err != nil {
		return nil, err
	}
	for _, peer := range results[1:] {
		row, err := compare(Row{Measured: name}, Speed, results[0], peer)
		if err != nil {
			return rows, err
		}
		row.Ours = results[0].times.throughput(t.size)
		if row.Theirs != nil {
			row.Theirs = peer.times.throughput(t.size)
		}
		rows = append(rows, row)
	}
	if b.Docker == nil {
		rows = append(rows, b.noDocker(Row{Measured: name, Ours: results[0].times.throughput(t.size)}, engineCat))
	}
	return rows, nil
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
func (t transfer) readFrom(command func(context.Context) *exec.Cmd) func(context.Context) error {
	return func(ctx context.Context) error {
		var seen counter
		cmd := command(ctx)
		cmd.Stdout = &seen
		err := runQuiet(cmd)
		return t.complete(seen.n, err)
	}
}

// writeTo feeds a program.
func (t transfer) writeTo(command func(context.Context, io.Reader) *exec.Cmd) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := runQuiet(command(ctx, t.content())); err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(t.dir, "new"))
		if err != nil {
			return err
		}
		return t.complete(info.Size(), nil)
	}
}

// discard deletes what was written.
func (t transfer) discard(context.Context) error { return os.Remove(filepath.Join(t.dir, "new")) }
