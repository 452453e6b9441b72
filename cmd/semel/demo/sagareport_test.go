package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/demo/internal/orders"
)

// shownSaga is a report of a saga demo that has shown what it should.
func shownSaga() *SagaReport {
	r := &SagaReport{Orders: 300, Seed: 1, Seconds: 6.1,
		Without: SagaFigures{Runs: 313, Reruns: 13, Requests: 899,
			Course: Course{Kills: 8, InFlightAtKills: 27, Samples: 61, P50: 54.5, P99: 295.7, Seconds: 2.8, Timeline: []Kill{{0.7, "worker 1", 3}}}},
		With: SagaFigures{Runs: 328, Reruns: 28, Requests: 919, Recognised: 17,
			Course: Course{Kills: 8, InFlightAtKills: 28, Samples: 62, P50: 74.9, P99: 241.1, Seconds: 3.2, Timeline: []Kill{{0.8, "worker 2", 4}}}},
	}
	r.Without.findings(orders.Findings{Booked: 186, Refused: 36, Undone: 57, Wrong: 21, Money: 806_795, Pieces: 9,
		Counts: map[orders.Mistake]int{orders.PaidTwice: 7, orders.PaidNotBooked: 11, orders.NotEnded: 14}})
	r.With.findings(orders.Findings{Booked: 199, Refused: 36, Undone: 65, Counts: map[orders.Mistake]int{}})
	return r
}

func TestSagaReport_AddsUp_NothingBroken(t *testing.T) {
	r := shownSaga()
	if err := r.judge(); err != nil || len(r.Broken) != 0 || len(r.Blind) != 0 {
		t.Errorf("got %v, broken %q, blind %q", err, r.Broken, r.Blind)
	}
}

// The run is judged by Semel's side, and says so if it shows nothing.
func TestSagaReport_Wrong_ErrorSaysWhat(t *testing.T) {
	for want, breaks := range map[string]func(*SagaReport){
		"the demo found a broken guarantee: with Semel: 1 orders paid more than once": func(r *SagaReport) {
			r.With.findings(orders.Findings{Counts: map[orders.Mistake]int{orders.PaidTwice: 1}})
		},
		"the demo found a broken guarantee: with Semel: the bank has 0.01 less than the booked orders cost": func(r *SagaReport) {
			r.With.findings(orders.Findings{Money: -1})
		},
		"the demo found a broken guarantee: with Semel: the stock lacks 1 pieces more than were booked": func(r *SagaReport) {
			r.With.findings(orders.Findings{Pieces: 1})
		},
		"the demo found a broken guarantee: with Semel: workers died by themselves 2 times; run again with --keep and read their logs": func(r *SagaReport) {
			r.With.Crashes = 2
		},
		"this run of the demo shows nothing: money and stock add up without Semel as well; try more --orders or more --kills": func(r *SagaReport) {
			r.Without.findings(orders.Findings{Wrong: 3, Counts: map[orders.Mistake]int{orders.NotEnded: 3}})
		},
		"this run of the demo shows nothing: no worker was killed (0 kills without Semel, 8 with Semel)": func(r *SagaReport) { r.Without.Kills = 0 },
		"this run of the demo shows nothing: no worker was killed (8 kills without Semel, 0 with Semel)": func(r *SagaReport) { r.With.Kills = 0 },
	} {
		r := shownSaga()
		breaks(r)
		err := r.judge()
		if _, ok := errors.AsType[*BrokenError](err); !ok || err.Error() != want || len(r.Broken)+len(r.Blind) != 1 {
			t.Errorf("got %v, want %s", err, want)
		}
		text := strings.Join(r.summary(), "\n")
		if isBlind := len(r.Blind) == 1; !strings.HasPrefix(text, map[bool]string{false: "BROKEN: ", true: "THIS RUN SHOWS NOTHING: "}[isBlind]) {
			t.Errorf("%s: the summary is %s", want, text)
		}
	}
}

func TestSagaReport_JSON_HasTheFieldsThatProgramsRead(t *testing.T) {
	r := shownSaga()
	if err := r.judge(); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"orders":300`, `"broken":[]`, `"shows_nothing":[]`, `"without_semel":{"kills":8`, `"booked":199`, `"wrong":21`, `"excess_cents":806795`,
		`"missing_pieces":9`, `"paid_more_than_once":7`, `"recognised":17`, `"latency_p50_ms":74.9`, `"timeline":[{"seconds":0.8`,
	} {
		if !strings.Contains(string(doc), part) {
			t.Errorf("%s is not in %s", part, doc)
		}
	}
}
