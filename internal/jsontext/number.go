package jsontext

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// appendNumber appends the shortest form in which ECMAScript writes the number
// (RFC 8785, section 3.2.2.3). encoding/json writes the same form, except for minus
// zero.
//
// A number that a double cannot hold is written with all its digits. This differs
// from the RFC, so that two account numbers never become equal by rounding.
func appendNumber(b []byte, n json.Number) ([]byte, error) {
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return nil, errors.New("a number is too large for a double")
	}
	d, err := parseDecimal(string(n))
	if err != nil {
		return nil, err
	}
	if d.digits == "" {
		return append(b, '0'), nil
	}
	if rounded, _ := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)); rounded == d {
		text, err := json.Marshal(f)
		return append(b, text...), err
	}
	return d.append(b), nil
}

// maxExponent is larger than the exponent of any useful number, and small enough
// that sums of exponents fit in an int.
const maxExponent = 1 << 30

// decimal is a number: the integer that the digits make, times a power of ten.
// Equal numbers are equal decimals.
type decimal struct {
	negative bool
	digits   string // without zeros at the start and the end; empty: the number zero
	exponent int
}

func parseDecimal(s string) (d decimal, err error) {
	s, d.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if d.exponent, err = strconv.Atoi(s[i+1:]); err != nil || d.exponent < -maxExponent {
			return d, errors.New("a number's exponent is too large")
		}
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := whole + fraction
	d.digits = strings.TrimRight(digits, "0")
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	if d.digits = strings.TrimLeft(d.digits, "0"); d.digits == "" {
		return decimal{}, nil
	}
	return d, nil
}

// append appends the number. An integer has no exponent, as most senders write it.
func (d decimal) append(b []byte) []byte {
	if d.negative {
		b = append(b, '-')
	}
	b = append(b, d.digits...)
	if d.exponent < 0 {
		return strconv.AppendInt(append(b, 'e'), int64(d.exponent), 10)
	}
	return append(b, strings.Repeat("0", d.exponent)...)
}
