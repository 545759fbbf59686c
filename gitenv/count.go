package gitenv

import (
	"math"
	"strings"
)

// ParseCount reads a value of [CountVar] as git 2.39 does on a machine with 64-bit longs, and returns the number of
// entries, at most 2147483647.
//
// Git uses strtoul, so more is accepted than digits: the empty value is 0, white space may come first (here vertical
// tab and form feed count), then one sign, then digits with any number of leading zeros. A minus sign negates within
// 64 bits, which makes nearly every negative number too large; "-0" is 0. Nothing may follow the digits, not even a
// blank. The error is a *[SyntaxError].
func ParseCount(value string) (int, error) {
	if value == "" {
		return 0, nil
	}
	bad := func(offset int, reason string) (int, error) {
		return 0, &SyntaxError{Var: CountVar, Offset: offset, Reason: reason}
	}
	pos := len(value) - len(strings.TrimLeft(value, spaces+"\v\f"))
	negative := false
	if pos < len(value) && (value[pos] == '+' || value[pos] == '-') {
		negative = value[pos] == '-'
		pos++
	}
	digits := pos
	var n uint64
	overflow := false
	for ; pos < len(value) && value[pos] >= '0' && value[pos] <= '9'; pos++ {
		d := uint64(value[pos] - '0')
		overflow = overflow || n > (math.MaxUint64-d)/10
		n = n*10 + d
	}
	switch {
	case pos == digits:
		return bad(pos, "a digit is expected")
	case pos < len(value):
		return bad(pos, "the number is followed by something else")
	case negative:
		n = -n
	}
	if overflow || n > math.MaxInt32 {
		return bad(digits, "the number is too large")
	}
	return int(n), nil
}

// Effective returns everything git takes from an environment, in the order git reads it: the COUNT family first, then
// [ParametersVar]. Where git wants one value, the last one wins; so a setting of GIT_CONFIG_PARAMETERS wins over the
// same key in the COUNT family, and both over every configuration file. Keys are in canonical form.
//
// The argument is os.LookupEnv or the result of [LookupIn]. The error is a *[SyntaxError] that names the variable;
// git refuses the environment in exactly these cases. An unset variable differs from an empty one: an empty
// GIT_CONFIG_VALUE_n is an empty value, an empty GIT_CONFIG_KEY_n is refused.
func Effective(lookup func(name string) (value string, ok bool)) ([]Pair, error) {
	count, _ := lookup(CountVar)
	n, err := ParseCount(count)
	if err != nil {
		return nil, err
	}
	var pairs []Pair
	for i := range n {
		pair, err := countPair(lookup, i)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	parameters, _ := lookup(ParametersVar)
	rest, err := Parse(parameters)
	if err != nil {
		return nil, err
	}
	return append(pairs, rest...), nil
}

// countPair reads the i-th pair of the COUNT family.
func countPair(lookup func(string) (string, bool), i int) (Pair, error) {
	const unset = "it is not set, although " + CountVar + " counts it"
	key, ok := lookup(KeyVar(i))
	if !ok {
		return Pair{}, &SyntaxError{Var: KeyVar(i), Reason: unset}
	}
	value, ok := lookup(ValueVar(i))
	if !ok {
		return Pair{}, &SyntaxError{Var: ValueVar(i), Reason: unset}
	}
	canonical, err := CanonicalKey(key)
	if err != nil {
		return Pair{}, &SyntaxError{Var: KeyVar(i), Reason: err.Error(), Kind: ErrKey}
	}
	if at := strings.IndexByte(value, 0); at >= 0 {
		return Pair{}, &SyntaxError{Var: ValueVar(i), Offset: at, Reason: ErrNUL.Error(), Kind: ErrNUL}
	}
	return Pair{Key: canonical, Value: value}, nil
}
