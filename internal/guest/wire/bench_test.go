package wire_test

import (
	"fmt"
	"testing"

	"github.com/workberth/workberth/fsbridge"
	"github.com/workberth/workberth/internal/guest/guesttest"
	"github.com/workberth/workberth/internal/guest/wire"
)

// BenchmarkDirEntries measures what a listing of 100 costs each side.
func BenchmarkDirEntries(b *testing.B) {
	var entries []fsbridge.DirEntry
	for i := range 100 {
		name := fmt.Sprintf("file-%03d.txt", i)
		entries = append(entries, fsbridge.DirEntry{Name: name, Info: fsbridge.FileInfo{
			Name: name, Type: fsbridge.TypeRegular, Mode: 0o644, Size: 12345, ModTime: guesttest.Then(),
			UID: 1000, GID: 1000, Nlink: 1, Dev: 66, Inode: 1234567,
		}})
	}
	var encoded []byte
	for _, e := range entries {
		encoded = wire.AppendDirEntry(encoded, e)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encoded = encoded[:0]
			for _, e := range entries {
				encoded = wire.AppendDirEntry(encoded, e)
			}
		}
		b.ReportMetric(float64(len(encoded)), "bytes")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for d := wire.NewDecoder(encoded); d.More(); n++ {
				_ = d.DirEntry()
			}
			if n != len(entries) {
				b.Fatalf("%d entries", n)
			}
		}
	})
}
