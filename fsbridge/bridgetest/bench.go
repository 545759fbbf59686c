package bridgetest

import (
	"fmt"
	"io"
	"testing"

	"github.com/workberth/workberth/fsbridge"
)

// bulk is the size of the file that the bulk benchmarks move, in bytes.
const bulk = 256 << 20

// Benchmark measures a bridge. Its sub-benchmarks are the measures that environments are compared
// by: stat, read-4k, write-4k (atomic), list-100, bulk-read and bulk-write (256 MiB, or the
// target's largest file), and tree-1000 (walk 1,000 small files and read each). What the bridge
// cannot do is skipped by name. Every measured operation is checked to have done its work.
func Benchmark(b *testing.B, target Target) {
	for _, m := range []struct {
		name string
		run  func(b *testing.B, e *Environment)
	}{
		{"stat", benchStat},
		{"read-4k", benchRead},
		{"write-4k", benchWrite},
		{"list-100", benchList},
		{"bulk-read", func(b *testing.B, e *Environment) { benchBulkRead(b, e, min(bulk, target.maxFile())) }},
		{"bulk-write", func(b *testing.B, e *Environment) { benchBulkWrite(b, e, min(bulk, target.maxFile())) }},
		{"tree-1000", benchTree},
	} {
		b.Run(m.name, func(b *testing.B) { m.run(b, target.New(b, Options{Umask: 0o022})) })
	}
}

// place makes a regular file in the workspace.
func (e *Environment) place(b *testing.B, p string, n Node) {
	b.Helper()
	n.Type = fsbridge.TypeRegular
	if err := e.Oracle.Make(e.Workspace+"/"+p, n); err != nil {
		b.Fatalf("oracle: make %q: %v", p, err)
	}
}

// capable skips where the bridge lacks a capability.
func (e *Environment) capable(b *testing.B, c fsbridge.Capability) {
	b.Helper()
	if !fsbridge.Has(e.Bridge, c) {
		b.Skipf("the bridge does not declare capability %q", c)
	}
}

func benchStat(b *testing.B, e *Environment) {
	e.place(b, "d/f", Node{Data: pattern(4096, 1)})
	ctx := b.Context()
	for b.Loop() {
		if i, err := e.Bridge.Stat(ctx, "d/f"); err != nil || i.Size != 4096 {
			b.Fatalf("stat: %+v, %v", i, err)
		}
	}
}

func benchRead(b *testing.B, e *Environment) {
	e.place(b, "d/f", Node{Data: pattern(4096, 1)})
	ctx := b.Context()
	b.SetBytes(4096)
	for b.Loop() {
		if data, err := e.Bridge.ReadFile(ctx, "d/f"); err != nil || len(data) != 4096 {
			b.Fatalf("read: %d bytes, %v", len(data), err)
		}
	}
}

func benchWrite(b *testing.B, e *Environment) {
	e.place(b, "d/f", Node{Data: pattern(4096, 1)})
	ctx := b.Context()
	data := pattern(4096, 2)
	b.SetBytes(4096)
	for b.Loop() {
		if err := e.Bridge.WriteFile(ctx, "d/f", data); err != nil {
			b.Fatalf("write: %v", err)
		}
	}
}

func benchList(b *testing.B, e *Environment) {
	e.capable(b, fsbridge.CapReadDirectory)
	for i := range 100 {
		e.place(b, numbered("d/f", i), Node{Data: []byte("x")})
	}
	ctx := b.Context()
	for b.Loop() {
		if l, err := fsbridge.ReadDirectory(ctx, e.Bridge, "d"); err != nil || len(l) != 100 {
			b.Fatalf("list: %d entries, %v", len(l), err)
		}
	}
}

func benchBulkRead(b *testing.B, e *Environment, size int64) {
	e.capable(b, fsbridge.CapOpenReader)
	e.place(b, "big", Node{Data: pattern(int(size), 1)})
	ctx := b.Context()
	buf := make([]byte, 1<<20)
	b.SetBytes(size)
	for b.Loop() {
		r, _, err := fsbridge.OpenReader(ctx, e.Bridge, "big")
		if err != nil {
			b.Fatalf("open: %v", err)
		}
		// Only Read is used, so that no shortcut between two files is measured.
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
		if err != nil || n != size {
			b.Fatalf("read: %d bytes, %v", n, err)
		}
		if err := r.Close(); err != nil {
			b.Fatalf("close: %v", err)
		}
	}
}

func benchBulkWrite(b *testing.B, e *Environment, size int64) {
	e.capable(b, fsbridge.CapWriteStream)
	block := pattern(1<<20, 1)
	ctx := b.Context()
	b.SetBytes(size)
	for b.Loop() {
		src := &repeatReader{block: block, left: size}
		res, err := fsbridge.WriteStream(ctx, e.Bridge, "big", src, fsbridge.WriteOptions{})
		if err != nil || res.Size != size {
			b.Fatalf("write: %+v, %v", res, err)
		}
	}
}

func benchTree(b *testing.B, e *Environment) {
	e.capable(b, fsbridge.CapWalk)
	for i := range 1000 {
		e.place(b, fmt.Sprintf("t/d%02d/f%03d", i/50, i), Node{Data: pattern(512, byte(i))})
	}
	ctx := b.Context()
	b.SetBytes(1000 * 512)
	for b.Loop() {
		n := 0
		err := fsbridge.Walk(ctx, e.Bridge, "t", fsbridge.WalkOptions{}, func(w fsbridge.WalkEntry) error {
			if !w.Info.IsRegular() {
				return w.Err
			}
			data, err := e.Bridge.ReadFile(ctx, "t/"+w.Path)
			n += len(data)
			return err
		})
		if err != nil || n != 1000*512 {
			b.Fatalf("walk: %d bytes, %v", n, err)
		}
	}
}
