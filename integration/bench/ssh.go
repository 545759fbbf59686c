package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
)

// sshBackend is the name of the backend that has measures of its own.
const sshBackend = "ssh"

// sshMeasures lists its measures: the peers are a program and a library that are no engines.
func sshMeasures() []measure {
	return []measure{
		{"files", "File operations", sshFilesHow, sshFiles},
		{"bulk", "Bulk transfer", sshBulkHow, sshBulk},
		{"tree", "A tree of small files", sshTreeHow, sshTree},
		{"distance", "A tree over a long line", sshDistanceHow, sshDistance},
	}
}

func sshFilesHow(kind) string {
	return "Through the bridge, to an OpenSSH server on this machine: describe a file, read one of 4 KiB, write one of 4 KiB (atomically, " +
		"over an existing one), list a directory of 100 files. Against a bare echo of 16 bytes over the same connection to the helper, and " +
		"against `github.com/pkg/sftp` on a connection like ours to the same server, which opens, reads and closes, and writes beside the " +
		"file and renames."
}

func sshBulkHow(kind) string {
	return "One file, read through `OpenReader` into nothing and written through `WriteStream` (which also hashes it) to a new name that is " +
		"deleted again. Against the `ssh` program that runs `cat` with a pipe to us, and `pkg/sftp` with 64 requests under way. The file is " +
		"in the page cache; nothing is flushed to the disk by any side."
}

func sshTreeHow(kind) string {
	return "1,000 files of 1 KiB in 50 directories: one walk that also hashes every file, and reading every file by 16 readers at the same " +
		"time. Against `pkg/sftp`, which lists every directory and reads every file to hash it, by 16 readers at the same time too."
}

func sshDistanceHow(kind) string {
	return "The same tree, read and written, to a server that is 50 ms away: all bytes go through a relay that holds them back for 25 ms in " +
		"each direction. By 64 callers at the same time. Against `pkg/sftp`, likewise, and `rsync -a -e ssh`, which makes its connection " +
		"anew. A round trip is 50 ms: the time in round trips is in the last column."
}

// What has to be reached against pkg/sftp.
func sftpBudgets() map[string]float64 {
	return map[string]float64{"stat": 1, "read 4 KiB": 2, "write 4 KiB, atomic": 1.7, "list 100": 5}
}

// The same for trees and for large files; and against the ssh program with cat.
const (
	sftpTree    = 4
	sftpBulk    = 0.95
	sshCatTimes = 1.5
)

// sshFiles measures single operations.
func sshFiles(ctx context.Context, b *Bench) (rows []Row, err error) {
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
	peer, err := b.SSH.sftp(x.workspace, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, peer.close()) }()
	word := []byte("sixteen bytes...")
	bounce := func(ctx context.Context) error { _, err := echo.Echo(ctx, word); return err }
	theirs := map[string]func(context.Context) error{
		"stat": func(context.Context) error { return peer.stat(len(content)) },
		"read 4 KiB": func(context.Context) error {
			data, err := peer.read("f")
			if err == nil && !bytes.Equal(data, content) {
				err = errors.New("read gave other bytes")
			}
			return err
		},
		"write 4 KiB, atomic": func(context.Context) error { return peer.replace("w", content) },
		"list 100":            func(context.Context) error { return peer.list("d", 100) },
	}
	for _, rival := range []string{"echo", sftpName} {
		for _, op := range fileOps(fb, content) {
			row := Row{Measured: op.name, Budget: op.budget}
			run, sense := bounce, Cost
			if rival == sftpName {
				row.Budget, run, sense = Budget{MinRatio: sftpBudgets()[op.name]}, theirs[op.name], Speed
			}
			results, err := race(ctx, b.pick(2000, 10), b.pick(200, 2), contender{name: op.name, run: op.run}, contender{name: rival, run: run})
			if err != nil {
				return rows, err
			}
			if row, err = compare(row, sense, results[0], results[1]); err != nil {
				return rows, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// sshBulk measures throughput.
func sshBulk(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := b.SSH.sftp(x.workspace, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, peer.close()) }()
	t := transfer{dir: x.workspace, bridge: fb, size: int64(b.pick(256, 16)) << 20, block: noise(1 << 20)}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	cat := rival{command: func(ctx context.Context, in io.Reader, argv ...string) *exec.Cmd {
		command := "cd " + x.workspace + " && exec cat " + argv[len(argv)-1]
		if in != nil {
			command = "cd " + x.workspace + " && cat > new"
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
			{name: "ours", run: t.read}, {name: program, run: t.readFrom(cat)}, {name: sftpName, run: t.readSFTP(peer)},
		}},
		{"write", []contender{
			{name: "ours", run: t.write, after: t.discard}, {name: program, run: t.writeTo(cat), after: t.discard},
			{name: sftpName, run: t.writeSFTP(peer), after: t.discard},
		}},
	} {
		results, err := race(ctx, b.pick(7, 2), 1, m.contenders...)
		if err != nil {
			return rows, err
		}
		for i, least := range []float64{sshCatTimes, sftpBulk} {
			row := Row{Measured: fmt.Sprintf("%s %d MiB", m.verb, t.size>>20), Budget: Budget{MinRatio: least}}
			if row, err = compare(row, Speed, results[0], results[i+1]); err != nil {
				return rows, err
			}
			row.Ours = results[0].times.throughput(t.size)
			if row.Theirs != nil {
				row.Theirs = results[i+1].times.throughput(t.size)
			}
			rows = append(rows, row)
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

// plantTree makes a tree of small files on this machine and returns their paths below dir.
func plantTree(dir string) ([]string, error) {
	content := noise(treeSize)
	var paths []string
	for i := range treeDirs * treePerDir {
		path := fmt.Sprintf("tree/dir-%02d/file-%02d", i/treePerDir, i%treePerDir)
		full := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, content, 0o644)); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// sshTree measures a tree of small files.
func sshTree(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := b.SSH.sftp(x.workspace, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, peer.close()) }()
	paths, err := plantTree(x.workspace)
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name         string
		ours, theirs func(context.Context) error
	}{
		{"walk with hashes, 1,000 files", func(ctx context.Context) error { return walkTree(ctx, fb) }, peer.hashTree},
		{
			"read 1,000 files, 16 readers", func(ctx context.Context) error { return readTree(ctx, fb, paths) },
			func(ctx context.Context) error { return peer.readAll(ctx, paths, treeReaders) },
		},
	} {
		results, err := race(ctx, b.pick(20, 3), b.pick(3, 1), contender{name: m.name, run: m.ours}, contender{name: sftpName, run: m.theirs})
		if err != nil {
			return rows, err
		}
		row, err := compare(Row{Measured: m.name, Budget: Budget{MinRatio: sftpTree}}, Speed, results[0], results[1])
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// hashTree lists the tree and hashes every file in it.
func (p *sftpPeer) hashTree(context.Context) error {
	dirs, err := p.ReadDir(p.at("tree"))
	if err != nil {
		return err
	}
	names := make([]string, 0, len(dirs))
	for _, d := range dirs {
		names = append(names, "tree/"+d.Name())
	}
	found := make(chan string, treeDirs*treePerDir)
	err = each(names, treeReaders, func(name string) error {
		files, err := p.ReadDir(p.at(name))
		for _, f := range files {
			found <- name + "/" + f.Name()
		}
		return err
	})
	close(found)
	if err != nil {
		return err
	}
	names = names[:0]
	for name := range found {
		names = append(names, name)
	}
	if len(names) != treeDirs*treePerDir {
		return fmt.Errorf("found %d files", len(names))
	}
	return each(names, treeReaders, func(name string) error {
		data, err := p.read(name)
		if err == nil && sha256.Sum256(data) == [sha256.Size]byte{} {
			err = errors.New("no hash")
		}
		return err
	})
}

// writeTree writes all files, so many at a time.
func writeTree(ctx context.Context, fb fsbridge.Bridge, paths []string, at int) error {
	content := noise(treeSize)
	return each(paths, at, func(name string) error { return fb.WriteFile(ctx, "new/"+name, content) })
}
