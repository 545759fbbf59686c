package attachments_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments"
	"github.com/workberth/workberth/attachments/mediastore"
	"github.com/workberth/workberth/internal/sandboxtest"
	"github.com/workberth/workberth/sandbox"
)

// noise is content of its own for each number, quickly made.
func noise(n, size int) []byte {
	data := make([]byte, size)
	seed := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	for i := 0; i < size; i += copy(data[i:], seed[:]) {
		seed = sha256.Sum256(seed[:])
	}
	return data
}

// Over a real OpenSSH server: a thousand files arrive, a second run sends nothing, and a later turn's
// file is there too; a command on the host finds each under the path of the note. ATT-16 ATT-19 ATT-21 C133
func TestOverSSH(t *testing.T) {
	t.Parallel()
	p := sandboxtest.New(t, sandboxtest.OpenSSH)
	sb := p.Sandbox(t)
	count, size := 1000, 100<<10
	if testing.Short() {
		count = 50
	}
	s := openStore(t, 0)
	facts := make([]attachments.MediaFact, count)
	start := time.Now()
	const workers = 8
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < count; i += workers {
				r, err := s.IngestBytes(t.Context(), noise(i, size), mediastore.Facts{Name: fmt.Sprintf("file %d.bin", i%10)})
				if err != nil {
					t.Errorf("ingest: %v", err)
				}
				facts[i] = attachments.FactOf(r)
			}
		})
	}
	wg.Wait()
	t.Logf("taken in: %v", time.Since(start))
	var sent int64
	prep := preparer(t, attachments.WorkspaceOptions{Store: s, CreateBridge: sb.Bridge, Progress: func(p attachments.Progress) {
		if p.Sent == p.Fact.Size {
			sent += p.Sent
		}
	}})
	for round, want := range []attachments.Outcome{attachments.Staged, attachments.Present} {
		start, sent = time.Now(), 0
		n, err := prep.Prepare(t.Context(), turn(facts...))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		t.Logf("round %d: %v for %d files", round, took, count)
		for _, f := range n.Files {
			if f.Outcome != want {
				t.Fatalf("round %d: %+v", round, f)
			}
		}
		if want == attachments.Present && sent != 0 {
			t.Errorf("the second run sent %d bytes", sent)
		}
		if took > 15*time.Second {
			t.Errorf("round %d took %v", round, took)
		}
	}
	later := ingest(t, s, "b.bin", "", "the second turn's file")
	n, err := prep.Prepare(t.Context(), turn(later))
	if err != nil {
		t.Fatal(err)
	}
	_, paths := notePaths(t, n)
	for _, f := range append(facts[:5:5], later) {
		n, err := prep.Prepare(t.Context(), turn(f))
		if err != nil {
			t.Fatal(err)
		}
		_, at := notePaths(t, n)
		paths = append(paths, at...)
	}
	res, err := sandbox.Run(t.Context(), sb, sandbox.Command{Argv: append([]string{"sha256sum", "--"}, paths...)}, nil, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.Stdout.Head)
	for i, f := range facts[:5] {
		data := sha256.Sum256(noise(i, size))
		if !strings.Contains(out, hex.EncodeToString(data[:])) || f.Digest == "" {
			t.Errorf("the host has not %s:\n%s", f.Name, out)
		}
	}
	if strings.Count(out, sum("the second turn's file")) != 2 {
		t.Errorf("the host has:\n%s", out)
	}
	if got := len(sandboxtest.Tree(t, filepath.Join(p.Root, "media/inbound"))); got != count+1 {
		t.Errorf("%d files, want %d", got, count+1)
	}
}
