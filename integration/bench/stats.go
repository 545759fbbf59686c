package bench

import (
	"math"
	"slices"
	"time"
)

// Unit is the unit of a quantity.
type Unit string

// The units.
const (
	Seconds        Unit = "s"
	BytesPerSecond Unit = "B/s"
	Bytes          Unit = "B"
	Count          Unit = "count"
)

// Quantity is what a series of samples comes to, in its unit.
type Quantity struct {
	Unit Unit `json:"unit"`
	// P50 is the median. P95 is the 95th percentile towards the bad end: the slowest, the
	// largest, or the lowest throughput.
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	// Worst is the worst sample.
	Worst float64 `json:"worst"`
	// Samples is the number of samples.
	Samples int `json:"samples"`
}

// series are samples in the order they were taken.
type series []float64

// times converts durations.
func times(ds []time.Duration) series {
	s := make(series, len(ds))
	for i, d := range ds {
		s[i] = d.Seconds()
	}
	return s
}

// quantile returns the smallest sample that is not below the share q of all (nearest rank). An
// empty series has none: NaN.
func (s series) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// quantity sums the series up, nil when it is empty.
func (s series) quantity(unit Unit) *Quantity {
	if len(s) == 0 {
		return nil
	}
	return &Quantity{Unit: unit, P50: s.quantile(0.5), P95: s.quantile(0.95), Worst: s.quantile(1), Samples: len(s)}
}

// over spreads each sample over n things.
func (s series) over(n int) series {
	out := make(series, len(s))
	for i, v := range s {
		out[i] = v / float64(n)
	}
	return out
}

// throughput turns times, each for moving size bytes, into throughputs; nil stays nil.
func (q *Quantity) throughput(size int64) *Quantity {
	if q == nil {
		return nil
	}
	n := float64(size)
	return &Quantity{Unit: BytesPerSecond, P50: n / q.P50, P95: n / q.P95, Worst: n / q.Worst, Samples: q.Samples}
}
