package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

func sshFilesHow(kind) string {
	return "Through the bridge, to an OpenSSH server on this machine: describe a file, read one of 4 KiB, write one of 4 KiB (atomically, " +
		"over an existing one), list a directory of 100 files. Against a bare echo of 16 bytes over the same connection to the helper, and " +
		"against `github.com/pkg/sftp` on a connection like ours to the same server, which opens, reads and closes, and writes beside the " +
		"file and renames."
}

// sshFiles measures single operations.
func sshFiles(ctx context.Context, b *Bench) (rows []Row, err error) {
	s, err := b.site(ctx, sshHost)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	content := noise(4096)
	if err := fillFiles(s.box, content); err != nil {
		return nil, err
	}
	echo, ok := s.sb.(echoer)
	if !ok {
		return nil, fmt.Errorf("a sandbox of backend %s cannot echo", b.Backend.Name())
	}
	word := []byte("sixteen bytes...")
	ops, theirs := fileOps(s.files, content), s.peer.fileOps(content)
	for _, op := range ops {
		bounce := contender{name: "echo", run: func(ctx context.Context) error { _, err := echo.Echo(ctx, word); return err }}
		if rows, err = b.duel(ctx, rows, op, Cost, op.budget, bounce); err != nil {
			return rows, err
		}
	}
	for _, op := range ops {
		peer := theirs[op.name]
		if rows, err = b.duel(ctx, rows, op, Speed, peer.budget, contender{name: sftpName, run: peer.run}); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// duel adds the row of an operation against one peer, call by call.
func (b *Bench) duel(ctx context.Context, rows []Row, op fileOp, sense Sense, budget Budget, peer contender) ([]Row, error) {
	results, err := race(ctx, b.pick(2000, 10), b.pick(200, 2), contender{name: op.name, run: op.run}, peer)
	if err != nil {
		return rows, err
	}
	more, err := compareAll(op.name, sense, results, budget)
	return append(rows, more...), err
}

// fileOps are the operations of fileOps by name, and the budgets for being faster than them.
func (p *sftpPeer) fileOps(content []byte) map[string]fileOp {
	return map[string]fileOp{
		"stat": {budget: Budget{MinRatio: 1}, run: func(context.Context) error { return p.stat(len(content)) }},
		"read 4 KiB": {budget: Budget{MinRatio: 2}, run: func(context.Context) error {
			data, err := p.read("f")
			if err == nil && !bytes.Equal(data, content) {
				err = errors.New("read gave other bytes")
			}
			return err
		}},
		"write 4 KiB, atomic": {budget: Budget{MinRatio: 1.7}, run: func(context.Context) error { return p.replace("w", content) }},
		"list 100":            {budget: Budget{MinRatio: 5}, run: func(context.Context) error { return p.list("d", 100) }},
	}
}
