package bench

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
)

func sshBulkHow(kind) string {
	return "One file, read through `OpenReader` into nothing and written through `WriteStream` (which also hashes it) to a new name that is " +
		"deleted again. Against the `ssh` program that runs `cat` with a pipe to us, and `pkg/sftp` with 64 requests under way. The file is " +
		"in the page cache; nothing is flushed to the disk by any side."
}

// sshBulk measures throughput.
func sshBulk(ctx context.Context, b *Bench) (rows []Row, err error) {
	s, err := b.site(ctx, sshHost)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	t := transfer{dir: s.workspace, bridge: s.files, size: int64(b.pick(256, 16)) << 20, block: noise(1 << 20)}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	cat := rival{command: func(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd {
		command := "cd " + s.workspace + " && exec cat " + argv[len(argv)-1]
		if in != nil {
			command = "cd " + s.workspace + " && cat > new"
		}
		cmd := b.SSH.program(ctx, command)
		cmd.Stdin = in
		return cmd
	}}
	const program = "the `ssh` program and `cat`"
	for _, m := range []struct {
		verb       string
		contenders []contender
	}{
		{"read", []contender{
			{name: "ours", run: t.read}, {name: program, run: t.readFrom(cat)}, {name: sftpName, run: t.readSFTP(s.peer)},
		}},
		{"write", []contender{
			{name: "ours", run: t.write, after: t.discard}, {name: program, run: t.writeTo(cat), after: t.discard},
			{name: sftpName, run: t.writeSFTP(s.peer), after: t.discard},
		}},
	} {
		more, err := t.race(ctx, m.verb, b.pick(7, 2), []Budget{{MinRatio: 1.5}, {MinRatio: 0.95}}, m.contenders)
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (t transfer) readSFTP(p *sftpPeer) func(context.Context) error {
	return func(context.Context) error {
		f, err := p.Open(p.at("big"))
		if err != nil {
			return err
		}
		n, err := f.WriteTo(&counter{})
		return errors.Join(t.complete(n, err), f.Close())
	}
}

func (t transfer) writeSFTP(p *sftpPeer) func(context.Context) error {
	return func(context.Context) error {
		f, err := p.Create(p.at("new"))
		if err != nil {
			return err
		}
		_, err = f.ReadFromWithConcurrency(t.content(), sftpRequests)
		return t.arrived(filepath.Join(t.dir, "new"), errors.Join(err, f.Close()))
	}
}
