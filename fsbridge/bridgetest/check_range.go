package bridgetest

import (
	"bytes"
	"io/fs"
	"math"

	"github.com/workberth/workberth/fsbridge"
)

// rangeChecks prove reads of parts of files.
func rangeChecks() []check {
	need := caps(fsbridge.CapReadRange)
	return []check{
		{name: "table", needs: need, run: rangeTable},
		{name: "errors", needs: need, run: rangeErrors},
	}
}

func rangeTable(k *kit) {
	const size = 100_000
	data := pattern(size, 1)
	k.file("f", string(data))
	k.file("empty", "")
	for _, c := range []struct{ off, n int64 }{
		{0, 0}, {0, 1}, {0, 10}, {0, size - 1}, {0, size}, {0, size + 1}, {0, 2 * size},
		{1, 1}, {1, size}, {4095, 2}, {4096, 4096}, {65535, 2}, {size / 2, size},
		{size - 1, 1}, {size - 1, 2}, {size - 10, 20}, {size, 0}, {size, 1}, {size + 1, 1}, {10 * size, 10}, {math.MaxInt64 - 1, 1},
		{math.MaxInt64, 100},
	} {
		want := data[min(c.off, size):min(size, max(c.off, c.off+min(c.n, size)))]
		got, err := fsbridge.ReadRange(k.ctx, k.b, "f", c.off, c.n)
		k.ok("range", err)
		if !bytes.Equal(got, want) {
			k.Errorf("range %d+%d: %d bytes, want %d", c.off, c.n, len(got), len(want))
		}
	}
	for _, off := range []int64{0, 1, 4096} {
		got, err := fsbridge.ReadRange(k.ctx, k.b, "empty", off, 10)
		k.ok("range of an empty file", err)
		if len(got) != 0 {
			k.Errorf("range of an empty file: %q", got)
		}
	}
}

func rangeErrors(k *kit) {
	k.file("f", "content")
	k.dir("d")
	for _, c := range []struct{ off, n int64 }{{-1, 1}, {0, -1}, {math.MinInt64, 1}, {0, math.MinInt64}, {-5, -5}} {
		got, err := fsbridge.ReadRange(k.ctx, k.b, "f", c.off, c.n)
		k.refused("negative range", err, fsbridge.ErrInvalid)
		if len(got) > 0 {
			k.Errorf("negative range: %q", got)
		}
	}
	_, err := fsbridge.ReadRange(k.ctx, k.b, "absent", 0, 1)
	k.refused("range of nothing", err, fs.ErrNotExist)
	_, err = fsbridge.ReadRange(k.ctx, k.b, "d", 0, 1)
	k.refused("range of a directory", err, fsbridge.ErrNotRegular)
	_, err = fsbridge.ReadRange(k.ctx, k.b, "d", 0, 0)
	k.refused("empty range of a directory", err, fsbridge.ErrNotRegular)
}
