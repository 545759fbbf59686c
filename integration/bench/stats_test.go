package bench

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	hundred := make(series, 100)
	for i := range hundred {
		hundred[i] = float64((i*37)%100 + 1) // 1 to 100, shuffled
	}
	for _, tc := range []struct {
		name string
		s    series
		q    float64
		want float64
	}{
		{"median of one", series{7}, 0.5, 7},
		{"median of two is the lower", series{4, 2}, 0.5, 2},
		{"median of three", series{9, 1, 5}, 0.5, 5},
		{"95 of 100", hundred, 0.95, 95},
		{"worst", hundred, 1, 100},
		{"best", hundred, 0, 1},
		{"95 of three is the worst", series{9, 1, 5}, 0.95, 9},
	} {
		if got := tc.s.quantile(tc.q); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
	if got := (series{}).quantile(0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing = %v", got)
	}
	if got := (series{}).quantity(Seconds); got != nil {
		t.Errorf("quantity of nothing = %v", got)
	}
}

func TestThroughputIsWorstWhereTimeIs(t *testing.T) {
	q := times([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}).quantity(Seconds).throughput(8e6)
	want := Quantity{Unit: BytesPerSecond, P50: 4e6, P95: 2e6, Worst: 2e6, Samples: 3}
	if *q != want {
		t.Errorf("got %+v, want %+v", *q, want)
	}
	if got := series(nil).quantity(Seconds).throughput(1); got != nil {
		t.Errorf("throughput of nothing = %v", got)
	}
}

func TestOver(t *testing.T) {
	if got := (series{10, 25}).over(5); !slices.Equal(got, series{2, 5}) {
		t.Errorf("10 and 25 over 5 = %v", got)
	}
}
