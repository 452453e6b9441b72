// Package fleet is the clients of the demo: they pay orders, in a hurry, and
// send what they are not sure of again, until each order has a final answer.
package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Order is what a client wants to be paid once.
type Order struct {
	Name   string
	Tenant string
	Key    string // two tenants use the same ones
	Amount int64  // in cents
	// Work is how long the payment takes; 0: as long as usual.
	Work time.Duration
}

// Kind is why a step is taken.
type Kind uint8

// The kinds of steps.
const (
	First   Kind = iota // the order is sent
	Again               // it is sent again, later
	Changed             // another amount is sent under its key
)

// Step is one thing that the fleet does.
type Step struct {
	Kind   Kind
	Order  int // an index into Plan.Orders
	Copies int // how many clients do it at once
	// HangUp is how long the first request waits for its answer; 0: as long as
	// it takes. The ones after it are patient.
	HangUp time.Duration
}

// Plan is all that the fleet does, in its order.
type Plan struct {
	Orders []Order
	Steps  []Step
	// Deliveries counts the copies of all steps. Each is repeated until it has
	// a final answer.
	Deliveries int
	// Changes counts the steps with another amount.
	Changes int
}

// The shares of orders, in percent.
const (
	repeated  = 30 // that are sent as duplicates
	impatient = 5  // whose first request hangs up
	changed   = 2  // under whose key another amount is sent
	stalled   = 1  // that take very long
)

const (
	// Slow is how long the payments take whose clients hang up.
	Slow = 60 * time.Millisecond
	// Stall is how long the payments take that take very long: half of it is
	// longer than a lease, so that the charge is yet to come when the successor
	// of a killed proxy asks what became of it.
	Stall = 2600 * time.Millisecond
)

var tenants = [...]string{"ada", "bob", "eve"}

// NewPlan makes the plan for so many orders: the same one for the same seed.
func NewPlan(seed uint64, orders int) *Plan {
	r := rand.New(rand.NewPCG(seed, uint64(orders)))
	p := &Plan{Orders: make([]Order, orders)}
	for i := range p.Orders {
		p.Orders[i] = Order{
			Name:   fmt.Sprintf("order-%05d", i+1),
			Tenant: tenants[i%len(tenants)],
			Key:    fmt.Sprintf("key-%05d", i/len(tenants)+1),
			Amount: 100 + r.Int64N(100_000),
		}
	}
	var steps []placed
	first := make([]Step, orders)
	for i := range first {
		first[i] = Step{Order: i, Copies: 1}
	}
	later := func(s Step) {
		steps = append(steps, placed{float64(s.Order) + 1 + r.Float64()*max(5, float64(orders)/8), s})
	}
	for n, i := range some(r, orders, repeated) {
		switch crowd := 2 + r.IntN(4); n % 3 {
		case 0:
			first[i].Copies = crowd
		case 1:
			later(Step{Kind: Again, Order: i, Copies: 1})
		case 2:
			later(Step{Kind: Again, Order: i, Copies: crowd})
		}
	}
	for _, i := range some(r, orders, stalled) {
		p.Orders[i].Work = Stall
	}
	for _, i := range some(r, orders, impatient) {
		p.Orders[i].Work = Slow
		first[i].HangUp = time.Duration((0.3 + 0.6*r.Float64()) * float64(Slow))
	}
	for _, i := range some(r, orders, changed) {
		later(Step{Kind: Changed, Order: i, Copies: 1})
		p.Changes++
	}
	for i, s := range first {
		steps = append(steps, placed{float64(i), s})
	}
	slices.SortStableFunc(steps, func(a, b placed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	for _, s := range steps {
		p.Steps = append(p.Steps, s.Step)
		p.Deliveries += s.Copies
	}
	return p
}

// placed is a step and where in the plan it belongs.
type placed struct {
	at float64
	Step
}

// some picks a share of n orders, and at least one.
func some(r *rand.Rand, n, percent int) []int {
	return r.Perm(n)[:max(1, n*percent/100)]
}
