package sshhost

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workberth/workberth/internal/tail"
)

// A flood of refusals leaves one line in a second and the number of the others.
func TestRefusalsAreFew(t *testing.T) {
	t.Parallel()
	var r refusals
	now := time.Unix(1_800_000_000, 0)
	written, left := 0, 0
	for range 5 {
		for range 1000 {
			if more, write := r.note("connections", now); write {
				written++
				left += more
			}
		}
		now = now.Add(time.Second)
	}
	if written != 5 || left != 4*999 {
		t.Errorf("%d written, %d told of", written, left)
	}
	if _, write := r.note("perAddress", now.Add(-time.Second)); !write {
		t.Error("another limit is not told of")
	}
}

// Events are one line of JSON each, whatever clients put into them; long texts are cut.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	out, log := &tail.Buffer{}, &tail.Buffer{}
	a := &auditor{w: out, log: slog.New(slog.NewTextHandler(log, nil))}
	for _, what := range []string{"line\nbreak", "\xff\xfe", `"quotes"`, "\x1b[31m", strings.Repeat("ü", 10_000)} {
		a.record(Event{Event: "session", What: what, Outcome: "ok"})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || len(e.What) > maxWhat+3 || !utf8.ValidString(e.What) || strings.Contains(line, "\x1b") {
			t.Errorf("%v in %.100q", err, line)
		}
	}
	a.w = failing{}
	a.record(Event{Event: "login", Outcome: "ok"})
	if !strings.Contains(log.String(), "cannot be written") {
		t.Errorf("a failing audit log goes unnoticed: %s", log)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }
