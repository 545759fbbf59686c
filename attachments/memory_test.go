package attachments_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/internal/sandboxtest"
)

// 64 MiB travel in constant memory. ATT-22
func TestConstantMemory(t *testing.T) {
	const size = 64 << 20
	s := openStore(t, size)
	r, err := s.IngestReader(t.Context(), &limitedZeros{size}, size, mediastore.Facts{Name: "big"})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	for _, p := range []place{localPlace(t), sandboxPlace(t, sandboxtest.Bubblewrap)} {
		prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: p.open, Limit: size})
		runtime.ReadMemStats(&before)
		if _, err := prep.Prepare(t.Context(), turn(attachments.FactOf(r))); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
			t.Errorf("%d bytes of memory were taken for a file of %d", used, size)
		} else {
			t.Logf("%d bytes of memory were taken in total", used)
		}
	}
}

type limitedZeros struct{ left int }

func (z *limitedZeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, fmt.Errorf("read beyond the end")
	}
	n := min(len(p), z.left)
	clear(p[:n])
	z.left -= n
	if z.left == 0 {
		return n, io.EOF
	}
	return n, nil
}
