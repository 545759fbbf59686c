package bench

import (
	"fmt"
	"strconv"
)

// Sense says how a ratio is to be read.
type Sense string

// The senses of a ratio.
const (
	// Cost: our time divided by the peer's. Small is good.
	Cost Sense = "cost"
	// Speed: the peer's time divided by ours, or our throughput by the peer's. Large is good.
	Speed Sense = "speed"
)

// Verdict says how a row compares with its budget.
type Verdict string

// The verdicts.
const (
	Met    Verdict = "met"
	Missed Verdict = "missed"
	// NoBudget: the row is there for comparison only.
	NoBudget Verdict = "no budget"
	// NotMeasured: the peer, or what it takes to measure, is missing; Row.Note says what.
	NotMeasured Verdict = "not measured"
)

// Budget bounds a ratio or a quantity. The zero value bounds nothing.
type Budget struct {
	// MaxRatio and MinRatio bound Row.Ratio.
	MaxRatio float64 `json:"maxRatio,omitempty"`
	MinRatio float64 `json:"minRatio,omitempty"`
	// MaxWorst and MaxP50 bound our own quantity, in its unit.
	MaxWorst float64 `json:"maxWorst,omitempty"`
	MaxP50   float64 `json:"maxP50,omitempty"`
	// Zero demands that our quantity, a count, is zero.
	Zero bool `json:"zero,omitempty"`
}

// Row is one line of the report.
type Row struct {
	// Measured is what was measured.
	Measured string    `json:"measured"`
	Ours     *Quantity `json:"ours,omitempty"`
	// Peer is who we are compared with; empty for nobody.
	Peer   string    `json:"peer,omitempty"`
	Theirs *Quantity `json:"theirs,omitempty"`
	// Ratio is zero where there is nothing to compare.
	Ratio   float64 `json:"ratio,omitempty"`
	Sense   Sense   `json:"sense,omitempty"`
	Budget  Budget  `json:"budget,omitzero"`
	Verdict Verdict `json:"verdict"`
	// Note explains what the numbers do not.
	Note string `json:"note,omitempty"`
}

// judged fills in ratio and verdict.
func (r Row) judged() Row {
	if r.Ours != nil && r.Theirs != nil {
		r.Ratio = ratio(r.Sense, r.Ours, r.Theirs)
	}
	b := r.Budget
	switch {
	case b == Budget{}:
		r.Verdict = NoBudget
		if r.Ours == nil || r.Peer != "" && r.Theirs == nil {
			r.Verdict = NotMeasured
		}
	case r.Ours == nil || (b.MaxRatio > 0 || b.MinRatio > 0) && r.Theirs == nil:
		r.Verdict = NotMeasured
	case b.MaxRatio > 0 && r.Ratio > b.MaxRatio,
		b.MinRatio > 0 && r.Ratio < b.MinRatio,
		b.MaxWorst > 0 && r.Ours.Worst > b.MaxWorst,
		b.MaxP50 > 0 && r.Ours.P50 > b.MaxP50,
		b.Zero && r.Ours.Worst != 0:
		r.Verdict = Missed
	default:
		r.Verdict = Met
	}
	return r
}

// ratio divides medians in the wanted sense.
func ratio(sense Sense, ours, theirs *Quantity) float64 {
	ourTime, theirTime := ours.P50, theirs.P50
	if ours.Unit == BytesPerSecond {
		ourTime, theirTime = 1/ours.P50, 1/theirs.P50
	}
	if sense == Cost {
		return ourTime / theirTime
	}
	return theirTime / ourTime
}

// String tells the bound in words.
func (b Budget) String() string {
	switch {
	case b.MaxRatio > 0:
		return fmt.Sprintf("at most %g× the time", b.MaxRatio)
	case b.MinRatio > 0:
		return fmt.Sprintf("at least %g× as fast", b.MinRatio)
	case b.Zero:
		return "0"
	}
	return ""
}

// factor writes a ratio with three digits or so.
func factor(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64) + "×"
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64) + "×"
	default:
		return strconv.FormatFloat(f, 'f', 2, 64) + "×"
	}
}

// budget is the bound of a row in words, with the unit of what it bounds.
func (r Row) budget() string {
	b := r.Budget
	unit := Seconds
	if r.Ours != nil {
		unit = r.Ours.Unit
	}
	switch {
	case b.MaxWorst > 0:
		return "at most " + format(unit, b.MaxWorst) + " at worst"
	case b.MaxP50 > 0:
		return "at most " + format(unit, b.MaxP50)
	}
	return b.String()
}

// format writes a value of the unit for a person.
func format(unit Unit, v float64) string {
	scaled := func(v float64, name string) string {
		digits := 2
		switch {
		case v >= 100:
			digits = 0
		case v >= 10:
			digits = 1
		}
		return strconv.FormatFloat(v, 'f', digits, 64) + " " + name
	}
	switch unit {
	case Seconds:
		switch {
		case v < 1e-3:
			return scaled(v*1e6, "µs")
		case v < 1:
			return scaled(v*1e3, "ms")
		}
		return scaled(v, "s")
	case BytesPerSecond:
		return fmt.Sprintf("%.0f MB/s", v/1e6)
	case Bytes:
		if v < 1<<20 {
			return scaled(v/(1<<10), "KiB")
		}
		return scaled(v/(1<<20), "MiB")
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

// grouped writes a count with a comma before each three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// sizeName writes a size in the largest unit that it has whole.
func sizeName(size int64) string {
	switch {
	case size%(1<<30) == 0:
		return grouped(int(size>>30)) + " GiB"
	case size%(1<<20) == 0:
		return grouped(int(size>>20)) + " MiB"
	}
	return grouped(int(size>>10)) + " KiB"
}
