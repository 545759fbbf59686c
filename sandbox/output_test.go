package sandbox

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// C077: what is kept is bounded, and what was dropped is counted exactly.
func TestOutputBufferModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(2, 40).Draw(t, "limit")
		b := NewOutputBuffer(limit)
		var all []byte
		check := func() {
			o := b.Output()
			if o.Total != int64(len(all)) || b.Total() != o.Total {
				t.Fatalf("total %d, want %d", o.Total, len(all))
			}
			if len(o.Head)+len(o.Tail) > limit {
				t.Fatalf("%d bytes kept, limit %d", len(o.Head)+len(o.Tail), limit)
			}
			if o.Dropped != o.Total-int64(len(o.Head)+len(o.Tail)) || o.Truncated() != (o.Dropped > 0) {
				t.Fatalf("dropped %d of %d with %d kept", o.Dropped, o.Total, len(o.Head)+len(o.Tail))
			}
			if len(all) <= limit && o.Dropped != 0 {
				t.Fatalf("%d of %d dropped, limit %d", o.Dropped, len(all), limit)
			}
			if !bytes.HasPrefix(all, o.Head) || !bytes.HasSuffix(all, o.Tail) {
				t.Fatalf("head %q, tail %q of %q", o.Head, o.Tail, all)
			}
			if want := append(append([]byte{}, o.Head...), o.Tail...); !bytes.Equal(o.Bytes(), want) {
				t.Fatalf("Bytes() = %q, want %q", o.Bytes(), want)
			}
			// A reader from any cursor gets exactly what is kept from there on.
			cursor := rapid.Int64Range(-1, int64(len(all))+1).Draw(t, "cursor")
			most := rapid.IntRange(0, 7).Draw(t, "most")
			var skipped, read int64
			at := min(max(cursor, 0), int64(len(all)))
			for pos := at; ; {
				c := b.Read(pos, most)
				if c.Offset != pos+c.Dropped || c.Next != c.Offset+int64(len(c.Data)) {
					t.Fatalf("chunk %+v at %d", c, pos)
				}
				if most > 0 && len(c.Data) > most {
					t.Fatalf("%d bytes, at most %d were asked", len(c.Data), most)
				}
				if !bytes.Equal(c.Data, all[c.Offset:c.Next]) {
					t.Fatalf("chunk at %d is %q, want %q", c.Offset, c.Data, all[c.Offset:c.Next])
				}
				skipped += c.Dropped
				read += int64(len(c.Data))
				if c.Next == int64(len(all)) {
					break
				}
				if c.Next == pos {
					t.Fatalf("no progress at %d of %d", pos, len(all))
				}
				pos = c.Next
			}
			if at+skipped+read != int64(len(all)) {
				t.Fatalf("from %d: %d skipped, %d read, %d in all", at, skipped, read, len(all))
			}
			if at == 0 && skipped != o.Dropped {
				t.Fatalf("a reader from the beginning missed %d, dropped are %d", skipped, o.Dropped)
			}
		}
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "p")
			if n, err := b.Write(p); n != len(p) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, p...)
			check()
		}
		if b.Read(int64(len(all)), 0).End {
			t.Fatal("ended before its end")
		}
		b.End()
		b.Write([]byte("late"))
		check()
		if !b.Read(int64(len(all)), 0).End {
			t.Fatal("not ended")
		}
	})
}

func TestOutputBufferFollow(t *testing.T) {
	b := NewOutputBuffer(1 << 20)
	var got strings.Builder
	var wg sync.WaitGroup
	wg.Go(func() {
		for cursor := int64(0); ; {
			c, err := b.Follow(t.Context(), cursor, 3)
			if err != nil {
				t.Errorf("follow: %v", err)
				return
			}
			got.Write(c.Data)
			cursor = c.Next
			if c.End {
				return
			}
		}
	})
	want := strings.Repeat("0123456789", 100)
	for i := 0; i < len(want); i += 7 {
		b.Write([]byte(want[i:min(i+7, len(want))]))
	}
	b.End()
	wg.Wait()
	if got.String() != want {
		t.Errorf("followed %d bytes, want %d", got.Len(), len(want))
	}
	c, err := b.Follow(t.Context(), int64(len(want)), 0)
	if err != nil || !c.End || len(c.Data) > 0 {
		t.Errorf("follow at the end: %+v, %v", c, err)
	}
}

func TestOutputBufferFollowGivesUp(t *testing.T) {
	b := NewOutputBuffer(10)
	b.Write([]byte("abc"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := b.Follow(ctx, 3, 0)
	if !errors.Is(err, context.Canceled) || c.Next != 3 || len(c.Data) > 0 {
		t.Errorf("follow = %+v, %v", c, err)
	}
	if c, err := b.Follow(ctx, 0, 0); err != nil || string(c.Data) != "abc" {
		t.Errorf("what is there is given also when ctx is over: %+v, %v", c, err)
	}
}

func FuzzOutputBuffer(f *testing.F) {
	f.Add(10, []byte("hello world, this is longer than ten"), 5)
	f.Add(2, []byte(""), 0)
	f.Fuzz(func(t *testing.T, limit int, data []byte, cut int) {
		if limit < 2 || limit > 1<<16 {
			t.Skip("outside of the interesting sizes")
		}
		b := NewOutputBuffer(limit)
		cut = min(max(cut, 0), len(data))
		b.Write(data[:cut])
		b.Write(data[cut:])
		o := b.Output()
		if !bytes.HasPrefix(data, o.Head) || !bytes.HasSuffix(data, o.Tail) || o.Dropped != int64(len(data)-len(o.Head)-len(o.Tail)) {
			t.Fatalf("kept %q and %q of %q", o.Head, o.Tail, data)
		}
	})
}
