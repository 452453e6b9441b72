package jsontext

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// appendNumber writes the shortest form that ECMAScript would (RFC 8785,
// §3.2.2.3). encoding/json does, too, except for minus zero. What a double does
// not hold differs from the RFC on purpose, and is written by its digits: two
// account numbers, or two amounts, must not be equal because a double cannot
// tell them apart.
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
	if held, _ := parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)); held == d {
		text, err := json.Marshal(f)
		return append(b, text...), err
	}
	return d.append(b), nil
}

// maxExponent is far beyond all that is sent, and far from where an int ends.
const maxExponent = 1 << 30

// decimal is a number as it is written: an integer, the digits, times a power
// of ten. Equal numbers are equal decimals.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; empty: zero
	exponent int
}

func parseDecimal(s string) (d decimal, err error) {
	s, d.negative = strings.CutPrefix(s, "-")
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		if d.exponent, err = strconv.Atoi(s[at+1:]); err != nil || d.exponent < -maxExponent {
			return d, errors.New("a number's exponent is too large")
		}
		s = s[:at]
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

// append writes an integer without an exponent, as it was sent as a rule.
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
