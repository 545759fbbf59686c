package mediastore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/workberth/workberth/attachments/mediastore"
)

// play is what a process of a test does.
func play(role string) int {
	s, err := mediastore.Open(mediastore.Options{Dir: os.Args[1]})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	switch role {
	case "ingest": // takes in and releases, as others do at the same time
		for i := range 15 {
			r, err := s.IngestBytes(ctx, fmt.Appendf(nil, "content %d", i%5), mediastore.Facts{Name: "other process"})
			if err == nil {
				var o *mediastore.Object
				if o, err = s.Open(ctx, r); err == nil {
					_, err = io.ReadAll(o)
				}
			}
			if err = errors.Join(err, s.Release(ctx, r.ID)); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	case "stream": // takes in without end, until it is killed
		fmt.Println("ready")
		for i := 0; ; i++ {
			data := strings.Repeat(fmt.Sprintf("line %d\n", i), 20_000)
			if _, err := s.IngestReader(ctx, strings.NewReader(data), int64(len(data)), mediastore.Facts{Name: fmt.Sprint(i)}); err != nil {
				fmt.Println(err)
				return 1
			}
			fmt.Println(i)
		}
	}
	return 0
}

// kill -9 in the middle of ingests: whatever has a reference is whole, no object is half, and a
// collection removes the rest.
func TestKilledWhileIngesting(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		cmd := roleCommand(t, "stream", s.Dir())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n <= round && lines.Scan(); n++ {
			if lines.Text() == "ready" {
				n--
			}
		}
		time.Sleep(time.Duration(round) * time.Millisecond) // sleep: the moment of the kill is to differ
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		check(t, s)
	}
	refs := must[[]mediastore.Reference](t)(s.References(t.Context()))
	if len(refs) == 0 {
		t.Fatal("nothing was taken in")
	}
	must[mediastore.Collected](t)(s.Collect(t.Context()))
	if left := files(t, s, "tmp"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	check(t, s)
}

// check wants every reference to have its content, and every object to be what it is named.
func check(t *testing.T, s *mediastore.Store) {
	t.Helper()
	for _, r := range must[[]mediastore.Reference](t)(s.References(t.Context())) {
		if got := content(t, s, r); int64(len(got)) != r.Size {
			t.Errorf("%s has %d bytes of %d", r.Name, len(got), r.Size)
		}
	}
	for _, name := range files(t, s, "objects") {
		data, err := os.ReadFile(s.Dir() + "/" + name)
		if err != nil || !strings.HasSuffix(name, string(digestOf(data))) {
			t.Errorf("object %s is half, %v", name, err)
		}
	}
}

// A process that was killed before it gave a name leaves a temporary file; a living one's stays.
func TestCollectTemporaries(t *testing.T) {
	s := openStore(t, mediastore.Options{})
	if err := os.WriteFile(s.Dir()+"/tmp/DEAD", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := s.IngestReader(t.Context(), r, -1, mediastore.Facts{})
		done <- err
	}()
	if _, err := w.Write([]byte("first half")); err != nil { // returns when it was read
		t.Fatal(err)
	}
	c := must[mediastore.Collected](t)(s.Collect(t.Context()))
	if c != (mediastore.Collected{Temporaries: 1}) {
		t.Errorf("collected %+v", c)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the ingest under way: %v", err)
	}
}
