//go:build linux

package local

import (
	"os"
	"strings"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/rooted"
)

func benchBridge(b *testing.B, how rooted.Options) (*Bridge, string) {
	b.Helper()
	dir := b.TempDir()
	br, err := newBridge(Options{Mounts: fsbridge.MountTable{{Path: dir, Kind: fsbridge.MountWorkspace}}}, how)
	must(b, err)
	b.Cleanup(func() { must(b, br.Close()) })
	must(b, os.MkdirAll(dir+"/a/b/c", 0o755))
	must(b, os.WriteFile(dir+"/a/b/c/f", []byte(strings.Repeat("x", 4096)), 0o644))
	return br, dir
}

func BenchmarkStat(b *testing.B) {
	for name, how := range ways() {
		b.Run(name, func(b *testing.B) {
			br, _ := benchBridge(b, how)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := br.Stat(b.Context(), "a/b/c/f"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead4K(b *testing.B) {
	for name, how := range ways() {
		b.Run(name, func(b *testing.B) {
			br, _ := benchBridge(b, how)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := br.ReadFile(b.Context(), "a/b/c/f"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadPinned4K(b *testing.B) {
	br, _ := benchBridge(b, rooted.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := br.ReadFileWithSource(b.Context(), "a/b/c/f"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite4K(b *testing.B) {
	for name, how := range ways() {
		b.Run(name, func(b *testing.B) {
			br, _ := benchBridge(b, how)
			data := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if err := br.WriteFile(b.Context(), "a/b/c/f", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
