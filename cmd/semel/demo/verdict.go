package main

import (
	"fmt"
	"strings"
)

// Report is the result of the demo, and its JSON.
type Report struct {
	Orders     int     `json:"orders"`
	Deliveries int     `json:"deliveries"` // each was repeated until it had a final answer
	Changes    int     `json:"mismatches"` // deliveries with another payload under an old key
	Seed       uint64  `json:"seed"`
	Seconds    float64 `json:"seconds"`

	Unprotected Figures `json:"unprotected"`
	Semel       Figures `json:"semel"`

	AddedP50 float64 `json:"added_latency_p50_ms"`
	AddedP99 float64 `json:"added_latency_p99_ms"`

	// Broken says which promises were; empty: none.
	Broken []string `json:"broken"`

	events bool // of consumers, and not of requests
}

// BrokenError is a demo that did not show what it should.
type BrokenError struct{ Broken []string }

// Error lists what was broken.
func (e *BrokenError) Error() string {
	return "the demo found a broken promise: " + strings.Join(e.Broken, "; ")
}

// judge fills in what follows from the figures.
func (r *Report) judge() error {
	r.AddedP50, r.AddedP99 = r.Semel.P50-r.Unprotected.P50, r.Semel.P99-r.Unprotected.P99
	r.Broken = []string{}
	check := func(broken bool, format string, args ...any) {
		if broken {
			r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
		}
	}
	s, u := &r.Semel, &r.Unprotected
	check(s.DoubleCharges > 0, "with Semel: %d double charges", s.DoubleCharges)
	check(s.Lost > 0, "with Semel: %d lost orders", s.Lost)
	check(s.UnequalReplays > 0, "with Semel: %d answers differ from the first for the same key", s.UnequalReplays)
	check(s.Stuck > 0, "with Semel: %d stuck orders", s.Stuck)
	check(s.Accepted > 0, "with Semel: %d changed payloads were accepted under a known key", s.Accepted)
	check(s.Accepted == 0 && s.Refused < r.Changes, "with Semel: only %d of %d changed payloads were refused", s.Refused, r.Changes)
	check(s.Unexpected > 0, "with Semel: %d answers that no client can expect", s.Unexpected)
	check(s.Crashes > 0, "with Semel: a process died by itself, %d times; its log is kept with --keep", s.Crashes)
	// The rest is about the demo: what it cannot see, it cannot show.
	check(u.DoubleCharges == 0, "without Semel: no double charge, so the demo is blind")
	if r.events {
		check(u.Lost == 0, "without Semel: no lost order, so the demo is blind")
		check(u.Kills == 0 || s.Kills == 0, "not every kind of process was killed (%d and %d times)", u.Kills, s.Kills)
	} else {
		check(u.Kills == 0 || s.WorkerKills == 0 || s.ProxyKills == 0, "not every kind of process was killed (%d, %d and %d times)", u.Kills, s.WorkerKills, s.ProxyKills)
	}
	if len(r.Broken) > 0 {
		return &BrokenError{r.Broken}
	}
	return nil
}
