package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
)

func sshTreeHow(kind) string {
	return "1,000 files of 1 KiB in 50 directories: one walk that also hashes every file, and reading every file by 16 readers at the same " +
		"time. Against `pkg/sftp`, which lists every directory and reads every file to hash it, by 16 readers at the same time too."
}

// sshTree measures a tree of small files.
func sshTree(ctx context.Context, b *Bench) (rows []Row, err error) {
	s, err := b.site(ctx, sshHost)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	paths, err := plantTree(s.workspace)
	if err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name         string
		ours, theirs func(context.Context) error
	}{
		{"walk with hashes, 1,000 files", func(ctx context.Context) error { return walkTree(ctx, s.files) }, s.peer.hashTree},
		{
			"read 1,000 files, 16 readers", func(ctx context.Context) error { return readTree(ctx, s.files, paths, treeReaders) },
			func(context.Context) error { return s.peer.readTree(paths, treeReaders) },
		},
	} {
		results, err := race(ctx, b.pick(20, 3), b.pick(3, 1), contender{name: m.name, run: m.ours}, contender{name: sftpName, run: m.theirs})
		if err != nil {
			return rows, err
		}
		more, err := compareAll(m.name, Speed, results, Budget{MinRatio: 4})
		if rows = append(rows, more...); err != nil {
			return rows, err
		}
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

// readTree reads all files, so many at a time.
func (p *sftpPeer) readTree(paths []string, at int) error {
	return each(paths, at, func(name string) error {
		data, err := p.read(name)
		if err == nil && len(data) != treeSize {
			err = fmt.Errorf("%d bytes", len(data))
		}
		return err
	})
}
