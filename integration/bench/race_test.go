package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRaceTakesTurns(t *testing.T) {
	var order strings.Builder
	mark := func(name string) func(context.Context) error {
		return func(context.Context) error { order.WriteString(name); return nil }
	}
	results, err := race(t.Context(), 3, 1,
		contender{name: "a", per: 2, run: mark("a"), after: mark(".")},
		contender{name: "b", before: mark("-"), run: mark("b")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := order.String(), "a.a.-b"+"-ba.a."+"a.a.-b"+"-ba.a."; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if a, b := len(results[0].times), len(results[1].times); a != 6 || b != 3 {
		t.Errorf("%d and %d samples, want 6 and 3: the first round does not count", a, b)
	}
}

func TestRaceDropsWhoFails(t *testing.T) {
	broken := errors.New("broken")
	runs := 0
	ok := contender{name: "ok", run: func(context.Context) error { runs++; return nil }}
	bad := contender{name: "bad", run: func(context.Context) error { return broken }}

	results, err := race(t.Context(), 4, 0, ok, bad)
	if err != nil || runs != 4 || results[0].err != nil || !errors.Is(results[1].err, broken) {
		t.Errorf("a peer failed: %v, %d runs, errors %v and %v", err, runs, results[0].err, results[1].err)
	}
	runs = 0
	results, err = race(t.Context(), 4, 0, bad, ok)
	if err != nil || runs > 1 || !errors.Is(results[0].err, broken) {
		t.Errorf("we failed: %v, %d runs, error %v", err, runs, results[0].err)
	}
	cleaned := contender{name: "c", run: func(context.Context) error { return nil }, after: func(context.Context) error { return broken }}
	if results, _ = race(t.Context(), 1, 0, cleaned); !errors.Is(results[0].err, broken) {
		t.Errorf("a failing clean-up was lost: %v", results[0].err)
	}
	unprepared := contender{name: "u", before: bad.run, run: ok.run}
	if results, _ = race(t.Context(), 1, 0, unprepared); !errors.Is(results[0].err, broken) || len(results[0].times) > 0 {
		t.Errorf("a failing preparation was lost: %v", results[0].err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := race(ctx, 1, 0, ok); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled race: %v", err)
	}
}
