//go:build linux

package guestfs_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/fsbridge/guestfs"
	"github.com/workberth/workberth/internal/guest/client"
)

// BenchmarkBridge measures the bridge against a server in another process. The
// budget: stat and a read of 4 KiB cost at most 1.6 times a bare echo, "raw", over
// the same transport.
func BenchmarkBridge(b *testing.B) {
	for _, transport := range []string{"socket", "pipes"} {
		b.Run(transport, func(b *testing.B) {
			root := b.TempDir()
			conn, err := client.New(b.Context(), startServer(b, transport, root), client.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			br := guestfs.New(conn, guestfs.Options{Assert: func() error { return nil }})
			if transport == "socket" {
				b.Run("raw", benchRaw)
			}
			b.Run("echo", func(b *testing.B) {
				data := make([]byte, 16)
				for b.Loop() {
					_, err := conn.Echo(b.Context(), data)
					must(b, err)
				}
			})
			benchSmall(b, br, root)
			benchBulk(b, br, root)
		})
	}
}

// BenchmarkWire measures bulk transfers of a bridge that costs nothing: what the
// protocol itself takes.
func BenchmarkWire(b *testing.B) {
	conn, err := client.New(b.Context(), startServer(b, "null", ""), client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	br := guestfs.New(conn, guestfs.Options{Assert: func() error { return nil }})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(nullSize)
		for b.Loop() {
			r, _, err := br.OpenReader(b.Context(), "big")
			must(b, err)
			_, err = io.Copy(io.Discard, r)
			must(b, err)
			must(b, r.Close())
		}
	})
	b.Run("write", func(b *testing.B) {
		block := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
		b.SetBytes(nullSize)
		for b.Loop() {
			_, err := br.WriteStream(b.Context(), "f", io.LimitReader(&pattern{block: block}, nullSize), fsbridge.WriteOptions{})
			must(b, err)
		}
	})
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func benchRaw(b *testing.B) {
	conn := startServer(b, "raw", "")
	buf := make([]byte, 16)
	for b.Loop() {
		_, err := conn.Write(buf)
		must(b, err)
		_, err = io.ReadFull(conn, buf)
		must(b, err)
	}
}

func benchSmall(b *testing.B, br *guestfs.Bridge, root string) {
	ctx := b.Context()
	page := bytes.Repeat([]byte{'x'}, 4096)
	must(b, os.MkdirAll(filepath.Join(root, "d"), 0o755))
	must(b, os.WriteFile(filepath.Join(root, "f"), page, 0o644))
	for i := range 100 {
		must(b, os.WriteFile(filepath.Join(root, "d", fmt.Sprintf("file-%03d.txt", i)), nil, 0o644))
	}
	b.Run("stat", func(b *testing.B) {
		for b.Loop() {
			_, err := br.Stat(ctx, "f")
			must(b, err)
		}
	})
	b.Run("read4k", func(b *testing.B) {
		for b.Loop() {
			_, err := br.ReadFile(ctx, "f")
			must(b, err)
		}
	})
	b.Run("write4k", func(b *testing.B) {
		for b.Loop() {
			must(b, br.WriteFile(ctx, "w", page))
		}
	})
	b.Run("list100", func(b *testing.B) {
		for b.Loop() {
			_, err := fsbridge.ReadDirectory(ctx, br, "d")
			must(b, err)
		}
	})
	b.Run("stat-parallel", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, err := br.Stat(ctx, "f")
				must(b, err)
			}
		})
	})
}

func benchBulk(b *testing.B, br *guestfs.Bridge, root string) {
	ctx := b.Context()
	const size = 256 << 20
	path := filepath.Join(root, "big")
	f, err := os.Create(path)
	must(b, err)
	block := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for range size / len(block) {
		_, err := f.Write(block)
		must(b, err)
	}
	must(b, f.Close())
	b.Run("bulk-read", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			r, _, err := br.OpenReader(ctx, "big")
			must(b, err)
			_, err = io.Copy(io.Discard, struct{ io.Reader }{r})
			must(b, err)
			must(b, r.Close())
		}
	})
	b.Run("bulk-readfile-32M", func(b *testing.B) {
		must(b, os.Truncate(path, 32<<20))
		b.SetBytes(32 << 20)
		for b.Loop() {
			_, err := br.ReadFile(ctx, "big")
			must(b, err)
		}
	})
	b.Run("bulk-write", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			_, err := br.WriteStream(ctx, "copy", io.LimitReader(&pattern{block: block}, size), fsbridge.WriteOptions{})
			must(b, err)
		}
	})
	b.Run("bulk-writefile-32M", func(b *testing.B) {
		data := bytes.Repeat(block, 32)
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			must(b, br.WriteFile(ctx, "copy", data))
		}
	})
}

// pattern is an endless source that costs little.
type pattern struct {
	block []byte
	off   int
}

func (p *pattern) Read(b []byte) (int, error) {
	n := copy(b, p.block[p.off:])
	p.off = (p.off + n) % len(p.block)
	return n, nil
}
