package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

func distanceHow(kind) string {
	return "The same tree, read and written, to a server that is 50 ms away: all bytes go through a relay that holds them back for 25 ms in " +
		"each direction. By 64 callers at the same time. Against `pkg/sftp`, likewise, and `rsync -a -e ssh`, which makes its connection " +
		"anew. A round trip is 50 ms: the time in round trips is in the last column."
}

// distantCallers is how many calls are made at the same time over the long line.
const distantCallers = 64

// rsyncName is the peer's name in the report.
const rsyncName = "`rsync`"

// distance measures a tree of small files over a long line.
func distance(ctx context.Context, b *Bench) (rows []Row, err error) {
	s, err := b.site(ctx, sshHostSlow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	local, err := os.MkdirTemp(b.Dir, "local-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(local)) }()
	d, n := distant{site: s, server: b.SSH, local: local}, b.pick(treeDirs*treePerDir, 200)
	if _, err := plant(local, n, treeSize); err != nil {
		return nil, err
	}
	if d.paths, err = plant(s.workspace, n, treeSize); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name       string
		contenders []contender
	}{
		{"read " + grouped(n) + " files", []contender{
			{name: "ours", run: d.read},
			{name: sftpName, run: func(context.Context) error { return s.peer.readTree(d.paths, distantCallers) }},
			{name: rsyncName, run: d.fetch, after: func(context.Context) error { return os.RemoveAll(filepath.Join(local, "got")) }},
		}},
		{"write " + grouped(n) + " files", []contender{
			{name: "ours", run: d.write, after: d.discard},
			{name: sftpName, run: d.writeSFTP, after: d.discard},
			{name: rsyncName, run: d.send, after: d.discard},
		}},
	} {
		results, err := race(ctx, b.pick(5, 1), b.pick(1, 0), m.contenders...)
		if err != nil {
			return rows, err
		}
		more, err := compareAll(m.name, Speed, results)
		if rows = append(rows, inRoundTrips(more)...); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// inRoundTrips notes in rows of times what they are in round trips of the long line.
func inRoundTrips(rows []Row) []Row {
	trip := (2 * halfWay).Seconds()
	for i, r := range rows {
		if r.Ours != nil && r.Theirs != nil {
			rows[i].Note = fmt.Sprintf("%.1f round trips against %.1f", r.Ours.P50/trip, r.Theirs.P50/trip)
		}
	}
	return rows
}

// distant is what the contenders need: a tree in the workspace, and the same one here.
type distant struct {
	*site
	server *SSHServer
	paths  []string
	local  string
}

func (d distant) read(ctx context.Context) error {
	return readTree(ctx, d.files, d.paths, distantCallers)
}

func (d distant) write(ctx context.Context) error {
	content := noise(treeSize)
	return each(d.paths, distantCallers, func(name string) error { return d.files.WriteFile(ctx, "new/"+name, content) })
}

// writeSFTP makes the directories and writes every file beside its name, as ours does.
func (d distant) writeSFTP(context.Context) error {
	var dirs []string
	for i := 0; i < len(d.paths); i += treePerDir {
		dirs = append(dirs, path.Join("new", path.Dir(d.paths[i])))
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

// rsync copies a directory over a connection made anew.
func (s *SSHServer) rsync(ctx context.Context, from, to string) error {
	return runQuiet(exec.CommandContext(ctx, "rsync", "-a", "-e", "ssh -F "+s.Config, from, to))
}

func (d distant) fetch(ctx context.Context) error {
	got := filepath.Join(d.local, "got")
	if err := os.Mkdir(got, 0o755); err != nil {
		return err
	}
	return d.server.rsync(ctx, sshHostSlow+":"+d.workspace+"/tree", got+"/")
}

func (d distant) send(ctx context.Context) error {
	if err := os.Mkdir(filepath.Join(d.workspace, "new"), 0o755); err != nil {
		return err
	}
	return d.server.rsync(ctx, filepath.Join(d.local, "tree"), sshHostSlow+":"+d.workspace+"/new/")
}

// discard wants the whole tree to have arrived, and deletes it.
func (d distant) discard(context.Context) error {
	for _, name := range d.paths {
		info, err := os.Stat(filepath.Join(d.workspace, "new", name))
		if err != nil || info.Size() != treeSize {
			return fmt.Errorf("%s did not arrive: %w", name, err)
		}
	}
	return os.RemoveAll(filepath.Join(d.workspace, "new"))
}
