package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// shown is a report of a demo that has shown what it should.
func shown() *Report {
	return &Report{
		Orders: 2000, Deliveries: 3219, Changes: 40, Seed: 1, Seconds: 21.4,
		Without: Figures{Sent: 3402, Duplicates: 1402, ServiceKills: 8, Executions: 3311, Reexecutions: 1311,
			Charges: 3268, DoubleCharges: 1268, UnequalReplays: 1019, Accepted: 40, ChargesPerOrder: []int{0, 1342, 326, 180, 114, 38},
			Course: Course{Kills: 8, InFlightAtKills: 96, Samples: 380, P50: 10.83, P99: 14.2, Seconds: 8.9,
				Timeline: []Kill{{3.2, "payment service", 11}, {4.1, "payment service", 12}}}},
		With: Figures{Sent: 4120, Duplicates: 2120, ServiceKills: 8, ProxyKills: 8, Executions: 2071, Reexecutions: 71,
			Charges: 2000, Replays: 1139, Conflicts: 801, Refused: 40, Parked: 160, Reconciled: 160, ChargesPerOrder: []int{0, 2000},
			Course: Course{Kills: 16, InFlightAtKills: 187, Samples: 372, P50: 13.9, P99: 31.08, Seconds: 12.5,
				Timeline: []Kill{{2.7, "payment service", 12}, {3.4, "semel proxy", 14}}}},
	}
}

// shownEvents is the same of a demo of events.
func shownEvents() *Report {
	return &Report{
		events: true, Orders: 2000, Deliveries: 4013, Changes: 40, Seed: 1, Seconds: 13.1,
		Without: Figures{Sent: 4013, Duplicates: 2013, ConsumerKills: 8, CutBeforeCharge: 34, CutAfterCharge: 1,
			Executions: 2234, Reexecutions: 234, Charges: 2200, DoubleCharges: 229, Lost: 29, Replays: 1812,
			Course: Course{Kills: 8, InFlightAtKills: 112, Samples: 205, P50: 12.4, P99: 114.7}},
		With: Figures{Sent: 4013, Duplicates: 2013, ConsumerKills: 8, CutBeforeCharge: 8,
			Executions: 2008, Reexecutions: 8, Charges: 2000, Replays: 1969, Refused: 40,
			Course: Course{Kills: 8, InFlightAtKills: 125, Samples: 211, P50: 19.1, P99: 76.6}},
	}
}

func TestVerdict_PromisesKept_NoError(t *testing.T) {
	for _, r := range []*Report{shown(), shownEvents()} {
		if err := r.judge(); err != nil || r.Broken == nil || len(r.Broken) != 0 {
			t.Errorf("got %v, broken %v", err, r.Broken)
		}
	}
}

func TestVerdict_PromiseBroken_IsAnError(t *testing.T) {
	for want, breaks := range map[string]func(*Report){
		"1 double charge":          func(r *Report) { r.With.DoubleCharges = 1 },
		"2 lost":                   func(r *Report) { r.With.Lost = 2 },
		"3 answers differ":         func(r *Report) { r.With.UnequalReplays = 3 },
		"4 stuck orders":           func(r *Report) { r.With.Stuck = 4 },
		"5 changed payloads":       func(r *Report) { r.With.Accepted = 5 },
		"only 39 of 40":            func(r *Report) { r.With.Refused = 39 },
		"6 unexpected answers":     func(r *Report) { r.With.Unexpected = 6 },
		"7 times; run again":       func(r *Report) { r.With.Crashes = 7 },
		"could not see one":        func(r *Report) { r.Without.DoubleCharges = 0 },
		"(0, 8 and 8 times)":       func(r *Report) { r.Without.Kills = 0 },
		"(8, 0 and 8 times)":       func(r *Report) { r.With.ServiceKills = 0 },
		"(8, 8 and 0 times)":       func(r *Report) { r.With.ProxyKills = 0 },
		"found a broken guarantee": func(r *Report) { r.With.Lost = 1 },
	} {
		r := shown()
		breaks(r)
		isBroken(t, r, want)
	}
	for want, breaks := range map[string]func(*Report){
		"1 double charge": func(r *Report) { r.With.DoubleCharges = 1 },
		"no double":       func(r *Report) { r.Without.DoubleCharges = 0 },
		"no lost order":   func(r *Report) { r.Without.Lost = 0 },
		"(0 and 8 times)": func(r *Report) { r.Without.Kills = 0 },
		"(8 and 0 times)": func(r *Report) { r.With.Kills = 0 },
	} {
		r := shownEvents()
		breaks(r)
		isBroken(t, r, want)
	}
}

func isBroken(t *testing.T, r *Report, want string) {
	t.Helper()
	err := r.judge()
	broken, ok := errors.AsType[*BrokenError](err)
	if !ok || !strings.Contains(err.Error(), want) || !slices.Equal(broken.Broken, r.Broken) || len(r.Broken) != 1 {
		t.Errorf("%s: got %v, broken %q", want, err, r.Broken)
	}
}
