package main

import (
	"math"
	"slices"
	"strconv"
)

// bounds are the lowest and the highest y.
func (p *panel) bounds() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range p.series {
		for _, v := range s.values {
			if v.Median() > 0 {
				low, high = min(low, v[0], v[1]), max(high, v[1], v[2])
			}
		}
	}
	if high == 0 {
		return 1, 10
	}
	if !p.log {
		return 0, high * 1.05
	}
	return low / 1.3, high * 1.3
}

// grid are round values between the bounds: three to seven.
func (p *panel) grid(low, high float64) (at []float64) {
	if p.log {
		for _, steps := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
			at = nil
			for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
				for _, s := range steps {
					if v := s * math.Pow(10, e); v >= low && v <= high {
						at = append(at, v)
					}
				}
			}
			if len(at) <= 7 {
				return at
			}
		}
		return at
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for high/step < 3 {
		step /= 2
	}
	for n := 0.0; n*step <= high; n++ {
		at = append(at, n*step)
	}
	for len(at) > 7 {
		at = slices.DeleteFunc(at, func(v float64) bool { return math.Mod(math.Round(v/step), 2) == 1 })
		step *= 2
	}
	return at
}

// short is a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1_000_000:
		return strconv.FormatFloat(v/1_000_000, 'g', 3, 64) + " M"
	case v >= 1000:
		return strconv.FormatFloat(v/1000, 'g', 4, 64) + " k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
