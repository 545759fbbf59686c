package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

// distantCallers is how many calls are made at the same time over the long line.
const distantCallers = 64

// sshDistance measures a tree of small files over a long line.
func sshDistance(ctx context.Context, b *Bench) (rows []Row, err error) {
	x, err := b.open(ctx, func(s *sandbox.Spec) { s.Config.SSH = sshHostSlow })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.remove(ctx)) }()
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := b.SSH.sftp(x.workspace, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, peer.close()) }()
	paths, err := plantTree(x.workspace)
	if err != nil {
		return nil, err
	}
	local, err := os.MkdirTemp(b.Dir, "local-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(local)) }()
	if _, err := plantTree(local); err != nil {
		return nil, err
	}
	d := distance{b: b, x: x, bridge: fb, peer: peer, paths: paths, local: local}
	for _, m := range []struct {
		name       string
		contenders []contender
	}{
		{"read 1,000 files", []contender{
			{name: "ours", run: d.read},
			{name: sftpName, run: func(ctx context.Context) error { return peer.readAll(ctx, paths, distantCallers) }},
			{name: "`rsync`", run: d.fetch, after: func(context.Context) error { return os.RemoveAll(filepath.Join(local, "got")) }},
		}},
		{"write 1,000 files", []contender{
			{name: "ours", run: func(ctx context.Context) error { return writeTree(ctx, fb, paths, distantCallers) }, after: d.discard},
			{name: sftpName, run: d.writeSFTP, after: d.discard},
			{name: "`rsync`", run: d.send, after: d.discard},
		}},
	} {
		results, err := race(ctx, b.pick(5, 1), b.pick(1, 0), m.contenders...)
		if err != nil {
			return rows, err
		}
		for _, theirs := range results[1:] {
			row, err := compare(Row{Measured: m.name}, Speed, results[0], theirs)
			if err != nil {
				return rows, err
			}
			if row.Theirs != nil {
				trip := (2 * halfWay).Seconds()
				row.Note = fmt.Sprintf("%.1f round trips against %.1f", row.Ours.P50/trip, row.Theirs.P50/trip)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// distance is what the contenders need.
type distance struct {
	b      *Bench
	x      *box
	bridge fsbridge.Bridge
	peer   *sftpPeer
	paths  []string
	local  string
}

func (d distance) read(ctx context.Context) error {
	return each(d.paths, distantCallers, func(name string) error {
		data, err := d.bridge.ReadFile(ctx, name)
		if err == nil && len(data) != treeSize {
			err = fmt.Errorf("%d bytes", len(data))
		}
		return err
	})
}

// writeSFTP makes the directories and writes every file beside its name, as ours does.
func (d distance) writeSFTP(context.Context) error {
	dirs := make([]string, 0, treeDirs)
	for i := range treeDirs {
		dirs = append(dirs, path.Join("new", path.Dir(d.paths[i*treePerDir])))
	}
	if err := d.peer.MkdirAll(d.peer.at("new/tree")); err != nil {
		return err
	}
	if err := each(dirs, distantCallers, func(name string) error { return d.peer.Mkdir(d.peer.at(name)) }); err != nil {
		return err
	}
	content := noise(treeSize)
	return each(d.paths, distantCallers, func(name string) error { return d.peer.replace("new/"+name, content) })
}

// rsync copies a directory.
func (d distance) rsync(ctx context.Context, from, to string) error {
	return runQuiet(exec.CommandContext(ctx, "rsync", "-a", "-e", "ssh -F "+d.b.SSH.Config, from, to))
}

func (d distance) fetch(ctx context.Context) error {
	got := filepath.Join(d.local, "got")
	if err := os.Mkdir(got, 0o755); err != nil {
		return err
	}
	return d.rsync(ctx, sshHostSlow+":"+d.x.workspace+"/tree", got+"/")
}

func (d distance) send(ctx context.Context) error {
	if err := os.Mkdir(filepath.Join(d.x.workspace, "new"), 0o755); err != nil {
		return err
	}
	return d.rsync(ctx, filepath.Join(d.local, "tree"), sshHostSlow+":"+d.x.workspace+"/new/")
}

// discard wants the whole tree to have arrived, and deletes it.
func (d distance) discard(context.Context) error {
	for _, name := range d.paths {
		info, err := os.Stat(filepath.Join(d.x.workspace, "new", name))
		if err != nil || info.Size() != treeSize {
			return fmt.Errorf("%s did not arrive: %w", name, err)
		}
	}
	return os.RemoveAll(filepath.Join(d.x.workspace, "new"))
}
