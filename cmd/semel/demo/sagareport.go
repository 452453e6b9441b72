package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/demo/internal/orders"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// SagaFigures are the counts of one part of the saga demo. All but the first four come
// from the books of the systems.
type SagaFigures struct {
	Course
	Runs       int `json:"runs"`       // of an order in a process
	Reruns     int `json:"re_runs"`    // beyond the first of each order
	Requests   int `json:"requests"`   // to the three systems: steps and compensations
	Recognised int `json:"recognised"` // of those, with a key that the system knew

	// Each order is one of these four.
	Booked  int `json:"booked"`
	Refused int `json:"refused"` // with nothing to undo
	Undone  int `json:"undone"`
	Wrong   int `json:"wrong"`

	// Mistakes counts the orders with each mistake that the audit has found. An order
	// may have several.
	Mistakes map[orders.Mistake]int `json:"mistakes"`
	// ExcessCents is how much money the bank has beyond the price of the booked orders,
	// and MissingPieces how many pieces the stock lacks beyond one for each.
	ExcessCents   int64 `json:"excess_cents"`
	MissingPieces int64 `json:"missing_pieces"`

	// Stray counts the movements of orders that nobody placed, and Unbalanced the
	// accounts that differ from the sum of their movements.
	Stray      int `json:"stray_movements"`
	Unbalanced int `json:"unbalanced_accounts"`

	wrong, excess []string // in sentences
}

func (f *SagaFigures) findings(a orders.Findings) {
	f.Booked, f.Refused, f.Undone, f.Wrong = a.Booked, a.Refused, a.Undone, a.Wrong
	f.Mistakes, f.ExcessCents, f.MissingPieces = a.Counts, a.Money, a.Pieces
	f.Stray, f.Unbalanced = a.Stray, a.Unbalanced
	f.wrong, f.excess = a.Sentences(), a.Excess()
}

// SagaReport is the result of the saga demo, and its JSON.
type SagaReport struct {
	Orders  int         `json:"orders"`
	Seed    uint64      `json:"seed"`
	Seconds float64     `json:"seconds"`
	Without SagaFigures `json:"without_semel"`
	With    SagaFigures `json:"with_semel"`
	// Broken names the guarantees that did not hold. Empty: all held.
	Broken []string `json:"broken"`
	// Blind says why the run shows nothing, although no guarantee broke. Empty: it shows
	// something.
	Blind []string `json:"shows_nothing"`
}

func (o *Options) sagaDemo() *demo {
	plan := orders.NewPlan(o.Seed, o.Orders)
	r := &SagaReport{Orders: o.Orders, Seed: o.Seed}
	half := func(into *SagaFigures, semel bool) part {
		return play(into, &into.Course, func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner[SagaFigures], error) {
			return openDesk(ctx, g, o, plan, dir, semel)
		})
	}
	return &demo{r, &r.Seconds, [2]part{half(&r.Without, false), half(&r.With, true)}}
}

// judge fills in Broken and Blind.
func (r *SagaReport) judge() error {
	s, u := &r.With, &r.Without
	r.Broken, r.Blind = []string{}, []string{}
	for _, wrong := range s.wrong {
		r.Broken = append(r.Broken, "with Semel: "+wrong)
	}
	if s.Crashes > 0 {
		r.Broken = append(r.Broken, fmt.Sprintf("with Semel: workers died by themselves %d times; run again with --keep and read their logs", s.Crashes))
	}
	switch {
	case u.Kills == 0 || s.Kills == 0:
		r.Blind = append(r.Blind, fmt.Sprintf("no worker was killed (%d kills without Semel, %d with Semel)", u.Kills, s.Kills))
	case u.ExcessCents == 0 && u.MissingPieces == 0:
		r.Blind = append(r.Blind, "money and stock add up without Semel as well; try more --orders or more --kills")
	}
	if len(r.Broken)+len(r.Blind) > 0 {
		return &BrokenError{r.Broken, r.Blind}
	}
	return nil
}

func (r *SagaReport) rows() []row {
	var all []row
	u, s := &r.Without, &r.With
	line := func(label string, without, with any) {
		all = append(all, row{label, fmt.Sprint(without), fmt.Sprint(with)})
	}
	line("orders", r.Orders, r.Orders)
	line("workers killed (kill -9)", u.Kills, s.Kills)
	line("  orders in flight at the kills", u.InFlightAtKills, s.InFlightAtKills)
	line("runs of orders", u.Runs, s.Runs)
	line("  beyond the first of each order", u.Reruns, s.Reruns)
	line("requests to bank, stock and shop", u.Requests, s.Requests)
	line("  repeated, known by their key", u.Recognised, s.Recognised)
	all = append(all, row{})
	line("booked", u.Booked, s.Booked)
	line("refused, with nothing to undo", u.Refused, s.Refused)
	line("undone (refunded, released)", u.Undone, s.Undone)
	line("WRONG", u.Wrong, s.Wrong)
	for _, m := range orders.Mistakes {
		if u.Mistakes[m] > 0 || s.Mistakes[m] > 0 {
			line("  "+m.Text(), u.Mistakes[m], s.Mistakes[m])
		}
	}
	all = append(all, row{})
	line("EXCESS MONEY IN THE BANK", orders.Money(u.ExcessCents), orders.Money(s.ExcessCents))
	line("PIECES MISSING IN THE STOCK", u.MissingPieces, s.MissingPieces)
	all = append(all, row{})
	line("time of an order in a worker: p50", milliseconds(u.P50), milliseconds(s.P50))
	line("                              p99", milliseconds(u.P99), milliseconds(s.P99))
	line("  measured before the first kill", u.Samples, s.Samples)
	return all
}

func (r *SagaReport) summary() []string {
	var lines []string
	for _, broken := range r.Broken {
		lines = append(lines, "BROKEN: "+broken)
	}
	for _, blind := range r.Blind {
		lines = append(lines, "THIS RUN SHOWS NOTHING: "+blind)
	}
	if len(lines) > 0 {
		return lines
	}
	u, s := &r.Without, &r.With
	lines = append(lines, "With Semel every order ended booked, refused or undone, and money and stock add up,",
		fmt.Sprintf("although %d workers were killed with %d orders in flight.", s.Kills, s.InFlightAtKills))
	if s.Recognised > 0 {
		lines = append(lines, fmt.Sprintf("%d requests came again after a kill that fell between a change and its record. They had their first key,", s.Recognised),
			"so that nothing was changed twice.")
	}
	return append(lines, fmt.Sprintf("Without Semel %d orders are wrong: %s.", u.Wrong, strings.Join(u.excess, ", and ")))
}

func (r *SagaReport) introduction(o *Options) string {
	return fmt.Sprintf(`This demo makes %d orders twice: first without Semel, then with Semel.
An order pays at the bank, holds a piece in the stock and is booked. If one of the three refuses it, the steps before are undone.
%d workers make the orders, and the demo kills one of them %d times (kill -9).
At the end an audit compares money, stock and bookings in the books of the three. Ctrl-C stops the demo and leaves nothing behind.

`, r.Orders, workers, o.Kills)
}

func (r *SagaReport) next(o *Options) []string {
	return suggest(o, "--saga", suggestion{"cd examples && go run ./saga-orders", "such a saga as a program, to read and to kill"}, tryRequests, tryEvents)
}

func (r *SagaReport) page() *page {
	p := newPage(r, halvesOf(&r.Without.Course, &r.With.Course), len(r.Broken)+len(r.Blind) > 0)
	p.Title, p.Unit, p.LatencyText = "Semel demo: orders over three systems", "orders", "Time from an order's first request to its end, in the worker that makes it."
	p.Subtitle = fmt.Sprintf("%d orders, seed %d. Without Semel: %.1f s, with Semel: %.1f s.", r.Orders, r.Seed, r.Without.Seconds, r.With.Seconds)
	p.BarsTitle, p.BarsText = "Orders by their end", "Number of orders by their end in the books of bank, stock and shop. No order should be wrong."
	u, s := &r.Without, &r.With
	p.Bars = barChartOf([]group{
		{"booked", [2]int{u.Booked, s.Booked}}, {"refused", [2]int{u.Refused, s.Refused}},
		{"undone", [2]int{u.Undone, s.Undone}}, {"wrong", [2]int{u.Wrong, s.Wrong}},
	}, r.Orders, "orders")
	return p
}
