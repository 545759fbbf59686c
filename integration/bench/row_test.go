package bench

import "testing"

func q(unit Unit, p50, worst float64) *Quantity {
	return &Quantity{Unit: unit, P50: p50, P95: worst, Worst: worst, Samples: 1}
}

func TestVerdict(t *testing.T) {
	ms := func(v float64) *Quantity { return q(Seconds, v/1000, v/1000) }
	for _, tc := range []struct {
		name  string
		row   Row
		want  Verdict
		ratio float64
	}{
		{"cost within", Row{Ours: ms(16), Peer: "p", Theirs: ms(10), Sense: Cost, Budget: Budget{MaxRatio: 1.6}}, Met, 1.6},
		{"cost beyond", Row{Ours: ms(17), Peer: "p", Theirs: ms(10), Sense: Cost, Budget: Budget{MaxRatio: 1.6}}, Missed, 1.7},
		{"fast enough", Row{Ours: ms(1), Peer: "p", Theirs: ms(20), Sense: Speed, Budget: Budget{MinRatio: 20}}, Met, 20},
		{"too slow", Row{Ours: ms(1), Peer: "p", Theirs: ms(19), Sense: Speed, Budget: Budget{MinRatio: 20}}, Missed, 19},
		{"throughput", Row{Ours: q(BytesPerSecond, 4e9, 1e9), Peer: "p", Theirs: q(BytesPerSecond, 1e9, 1e9), Sense: Speed, Budget: Budget{MinRatio: 4}}, Met, 4},
		{"throughput as cost", Row{Ours: q(BytesPerSecond, 1e9, 1e9), Peer: "p", Theirs: q(BytesPerSecond, 2e9, 2e9), Sense: Cost}, NoBudget, 2},
		{"peer missing", Row{Ours: ms(1), Peer: "p", Sense: Speed, Budget: Budget{MinRatio: 20}}, NotMeasured, 0},
		{"ours missing", Row{Peer: "p", Theirs: ms(1), Sense: Speed, Budget: Budget{MinRatio: 20}}, NotMeasured, 0},
		{"ours alone", Row{Ours: ms(1)}, NoBudget, 0},
		{"nothing", Row{Peer: "p"}, NotMeasured, 0},
		{"worst within", Row{Ours: q(Seconds, 0.2, 0.7), Budget: Budget{MaxWorst: 0.7}}, Met, 0},
		{"worst beyond", Row{Ours: q(Seconds, 0.2, 0.71), Budget: Budget{MaxWorst: 0.7}}, Missed, 0},
		{"median within", Row{Ours: q(Bytes, 100, 900), Budget: Budget{MaxP50: 100}}, Met, 0},
		{"median beyond", Row{Ours: q(Bytes, 101, 900), Budget: Budget{MaxP50: 100}}, Missed, 0},
		{"none failed", Row{Ours: tally(0, 9), Budget: Budget{Zero: true}}, Met, 0},
		{"one failed", Row{Ours: tally(1, 9), Budget: Budget{Zero: true}}, Missed, 0},
	} {
		got := tc.row.judged()
		if got.Verdict != tc.want || got.Ratio < tc.ratio*0.999 || got.Ratio > tc.ratio*1.001 {
			t.Errorf("%s: %s with ratio %v, want %s with %v", tc.name, got.Verdict, got.Ratio, tc.want, tc.ratio)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, tc := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Seconds, 0.0000421, "42.1 µs"},
		{Seconds, 0.000421, "421 µs"},
		{Seconds, 0.00421, "4.21 ms"},
		{Seconds, 12.34, "12.3 s"},
		{BytesPerSecond, 1.8836e9, "1884 MB/s"},
		{Bytes, 2048, "2.00 KiB"},
		{Bytes, 12 << 20, "12.0 MiB"},
		{Count, 3, "3"},
	} {
		if got := format(tc.unit, tc.v); got != tc.want {
			t.Errorf("format(%s, %v) = %s, want %s", tc.unit, tc.v, got, tc.want)
		}
	}
	if got := factor(1.234) + factor(42.34) + factor(417.6); got != "1.23×42.3×418×" {
		t.Errorf("factors: %s", got)
	}
}

func TestCountsAndSizes(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for size, want := range map[int64]string{2 << 30: "2 GiB", 64 << 20: "64 MiB", 100 << 10: "100 KiB", 1025 << 20: "1,025 MiB"} {
		if got := sizeName(size); got != want {
			t.Errorf("%d is %s, want %s", size, got, want)
		}
	}
}
