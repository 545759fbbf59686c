package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/sandbox"
)

func copiesHow(kind) string {
	return "600 files of 2 KiB of this machine, copied to the server that is 50 ms away, and copied again after 3 of them have changed. " +
		"First: a sandbox whose workspace does not exist is made with a seed, up to the answer to the first question about a file. Again, " +
		"in the two ways there are: what `berth sandbox recreate` does, which removes the sandbox and fills the workspace anew, with all " +
		"600 files; and a program of the Go interface, which compares the hashes of one walk with its own and writes the files that differ. " +
		"Every copy makes its connections anew, and so does the peer, `rsync -a -e ssh`. The connections are counted at the relay."
}

// What is copied.
const (
	copiedFiles   = 600
	copiedSize    = 2048
	copiedChanged = 3
)

// What a copy over the long line may take, in seconds and in connections.
const (
	firstCopy       = 15
	nextCopy        = 3
	copyConnections = 3
)

// copies measures the copy of a tree over a long line, and its renewal.
func copies(ctx context.Context, b *Bench) (rows []Row, err error) {
	dir, err := os.MkdirTemp(b.Dir, "copies-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &copier{bench: b, dir: dir, from: filepath.Join(dir, "from"), line: b.SSH.lines[sshHostSlow]}
	if c.paths, err = plant(c.from, b.pick(copiedFiles, 60), copiedSize); err != nil {
		return nil, err
	}
	files := grouped(len(c.paths)) + " files"
	again := fmt.Sprintf("%s again, %d changed", files, copiedChanged)
	for _, m := range []struct {
		name string
		most float64 // seconds
		// before prepares a copy, ours or theirs.
		before func(to string) error
		ours   func(ctx context.Context) error
	}{
		{files + " for the first time", firstCopy, os.RemoveAll, c.seed},
		{again, nextCopy, c.change, c.recreate},
		{again + ", only those", nextCopy, c.change, c.update},
	} {
		before := func(to string) func(context.Context) error {
			return func(context.Context) error { return m.before(to) }
		}
		c.connections = nil
		results, err := race(ctx, b.pick(4, 1), 0,
			contender{name: "ours", before: before(c.ours()), run: c.counted(m.ours), after: c.leave},
			contender{name: rsyncName, before: before(c.theirs()), run: c.rsync, after: func(context.Context) error { return c.arrived(c.theirs()) }})
		if err != nil {
			return rows, err
		}
		more, err := compareAll(m.name, Speed, results, Budget{MaxWorst: m.most})
		if rows = append(rows, inRoundTrips(more)...); err != nil {
			return rows, err
		}
		rows = append(rows, Row{
			Measured: "connections for it", Ours: c.connections.quantity(Count), Budget: Budget{MaxWorst: copyConnections},
		})
	}
	return rows, nil
}

// copier copies the files in from into workspaces that are reached over the line.
type copier struct {
	bench     *Bench
	dir, from string
	paths     []string
	line      *relay

	box         *box   // of our copy; nil when there is none
	kept        string // where our last copy was moved to; empty when it was not
	changes     uint64
	connections series // that each of our copies made
}

func (c *copier) ours() string   { return filepath.Join(c.dir, "ours") }
func (c *copier) theirs() string { return filepath.Join(c.dir, "theirs") }

// counted counts the connections of a copy.
func (c *copier) counted(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		before := c.line.traffic()
		err := run(ctx)
		c.connections = append(c.connections, float64(c.line.traffic().since(before).connections))
		return err
	}
}

// open makes a sandbox on our copy, with the files as its seed, and asks for one of them.
func (c *copier) open(ctx context.Context) (fsbridge.Bridge, error) {
	x, err := c.bench.open(ctx, func(s *sandbox.Spec) {
		s.Config.SSH, s.Config.Seed, s.Workspace = sshHostSlow, c.from, c.ours()
	})
	if err != nil {
		return nil, err
	}
	c.box = x
	fb, err := x.bridge(ctx)
	if err != nil {
		return nil, err
	}
	_, err = fb.Stat(ctx, c.paths[0])
	return fb, err
}

// leave wants everything to have arrived, and ends the sandbox and with it its connection. The copy
// stays, the one before it goes.
func (c *copier) leave(ctx context.Context) error {
	kept, x := c.kept, c.box
	c.kept, c.box = "", nil
	err := c.arrived(c.ours())
	if kept != "" {
		err = errors.Join(err, os.RemoveAll(kept))
	}
	if x != nil {
		err = errors.Join(err, x.end(ctx))
	}
	return err
}

// change changes some files, always the same ones, for the next copy: so each copy has to renew
// just these.
func (c *copier) change(string) error {
	c.changes++
	content := noise(copiedSize)
	binary.LittleEndian.PutUint64(content[8:], c.changes)
	for i := range copiedChanged {
		path := filepath.Join(c.from, c.paths[i*len(c.paths)/copiedChanged])
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// seed copies everything into a workspace that does not exist.
func (c *copier) seed(ctx context.Context) error {
	_, err := c.open(ctx)
	return err
}

// reseeder is a backend that moves a workspace aside to fill it anew.
type reseeder interface {
	Reseed(ctx context.Context, spec sandbox.Spec) (kept string, err error)
}

// recreate copies everything again.
func (c *copier) recreate(ctx context.Context) error {
	r, ok := c.bench.Backend.(reseeder)
	if !ok {
		return fmt.Errorf("backend %s cannot fill a workspace anew", c.bench.Name)
	}
	spec := c.bench.spec(c.ours())
	spec.Config.SSH, spec.Config.Seed = sshHostSlow, c.from
	kept, err := r.Reseed(ctx, spec)
	if err != nil {
		return err
	}
	c.kept = kept
	return c.seed(ctx)
}

// update copies what differs.
func (c *copier) update(ctx context.Context) error {
	fb, err := c.open(ctx)
	if err != nil {
		return err
	}
	there := map[string]fsbridge.Digest{}
	err = fsbridge.Walk(ctx, fb, ".", fsbridge.WalkOptions{Hash: true}, func(e fsbridge.WalkEntry) error {
		there[e.Path] = e.Digest
		return e.Err
	})
	if err != nil {
		return err
	}
	contents := map[string][]byte{}
	for _, p := range c.paths {
		data, err := os.ReadFile(filepath.Join(c.from, p))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); there[p] != fsbridge.DigestOf(sum[:]) {
			contents[p] = data
		}
	}
	if len(contents) != copiedChanged {
		return fmt.Errorf("%d files differ, and %d have changed", len(contents), copiedChanged)
	}
	return each(slices.Collect(maps.Keys(contents)), distantCallers, func(p string) error { return fb.WriteFile(ctx, p, contents[p]) })
}

// rsync copies what differs by size or time.
func (c *copier) rsync(ctx context.Context) error {
	return c.bench.SSH.rsync(ctx, c.from+"/", sshHostSlow+":"+c.theirs()+"/")
}

// arrived wants a copy to hold what is here.
func (c *copier) arrived(to string) error {
	for _, p := range c.paths {
		want, err1 := os.ReadFile(filepath.Join(c.from, p))
		got, err2 := os.ReadFile(filepath.Join(to, p))
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the copy of %s is not like it", p)
		}
	}
	return nil
}
