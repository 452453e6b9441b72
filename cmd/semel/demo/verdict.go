package main

import (
	"fmt"
	"strings"
)

// Report is the result of the demo, and its JSON.
type Report struct {
	Orders     int     `json:"orders"`
	Deliveries int     `json:"deliveries"`       // a client repeats each until it has a final answer
	Changes    int     `json:"changed_payloads"` // deliveries that reuse a key with another amount
	Seed       uint64  `json:"seed"`
	Seconds    float64 `json:"seconds"`

	Without Figures `json:"without_semel"`
	With    Figures `json:"with_semel"`

	// Broken names the guarantees that did not hold. Empty: all held.
	Broken []string `json:"broken"`

	events bool // the orders were messages, not requests
}

// BrokenError reports a demo in which a guarantee did not hold, or which could
// not have seen that.
type BrokenError struct {
	Broken []string
	Blind  []string // why the run could not have seen one; the saga demo
}

// Error implements error.
func (e *BrokenError) Error() string {
	if len(e.Broken) == 0 {
		return "this run of the demo shows nothing: " + strings.Join(e.Blind, "; ")
	}
	return "the demo found a broken guarantee: " + strings.Join(e.Broken, "; ")
}

// judge fills in Broken from the figures.
func (r *Report) judge() error {
	r.Broken = []string{}
	check := func(broken bool, format string, args ...any) {
		if broken {
			r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
		}
	}
	s, u := &r.With, &r.Without
	check(s.DoubleCharges > 0, "with Semel: %d double charges", s.DoubleCharges)
	check(s.Lost > 0, "with Semel: %d lost orders", s.Lost)
	check(s.UnequalReplays > 0, "with Semel: %d answers differ from the first for the same key", s.UnequalReplays)
	check(s.Stuck > 0, "with Semel: %d stuck orders", s.Stuck)
	check(s.Accepted > 0, "with Semel: %d changed payloads were accepted under a known key", s.Accepted)
	check(s.Accepted == 0 && s.Refused < r.Changes, "with Semel: only %d of %d changed payloads were refused", s.Refused, r.Changes)
	check(s.Unexpected > 0, "with Semel: %d unexpected answers", s.Unexpected)
	check(s.Crashes > 0, "with Semel: processes died by themselves %d times; run again with --keep and read their logs", s.Crashes)
	// The rest checks the demo itself: a demo that sees no double charge without
	// Semel proves nothing with it.
	check(u.DoubleCharges == 0, "without Semel: no double charge, so the demo could not see one")
	if r.events {
		check(u.Lost == 0, "without Semel: no lost order, so the demo could not see one")
		check(u.Kills == 0 || s.Kills == 0, "not every kind of process was killed (%d and %d times)", u.Kills, s.Kills)
	} else {
		check(u.Kills == 0 || s.ServiceKills == 0 || s.ProxyKills == 0, "not every kind of process was killed (%d, %d and %d times)", u.Kills, s.ServiceKills, s.ProxyKills)
	}
	if len(r.Broken) > 0 {
		return &BrokenError{Broken: r.Broken}
	}
	return nil
}
