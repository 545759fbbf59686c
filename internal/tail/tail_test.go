package tail

import (
	"io"
	"testing"
)

func TestBuffer(t *testing.T) {
	b := Buffer{Limit: 12}
	if got := b.Line(0); got != "" {
		t.Errorf("of nothing: %s", got)
	}
	for _, s := range []string{"gone\n", "first\n", "se\x1bcond\n\n"} {
		if _, err := io.WriteString(&b, s); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); got != "st\nse\x1bcond\n\n" {
		t.Errorf("kept %q", got)
	}
	if got := b.Line(0); got != `"se\x1bcond"` {
		t.Errorf("line %s", got)
	}
	if got := b.Line(2); got != `"se..."` {
		t.Errorf("short line %s", got)
	}
}

// Without a limit everything is kept.
func TestBufferKeepsAll(t *testing.T) {
	var b Buffer
	for range 1000 {
		if _, err := io.WriteString(&b, "12345"); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(b.String()); got != 5000 {
		t.Errorf("kept %d bytes", got)
	}
}
