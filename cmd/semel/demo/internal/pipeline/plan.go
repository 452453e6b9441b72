package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Order is what is to be charged once.
type Order struct {
	ID     string // and the idempotency key of its messages
	Amount int64  // in cents
}

// Kind is why a step is taken.
type Kind uint8

// The kinds of steps.
const (
	First   Kind = iota // the order is sent
	Again               // it is sent again, later
	Changed             // another amount is sent under its key
)

// Step is one thing that a producer does.
type Step struct {
	Kind   Kind
	Order  int // an index into Plan.Orders
	Copies int // how many messages at once
}

// Plan is all that the producers do, in its order.
type Plan struct {
	Orders   []Order
	Steps    []Step
	Messages int // the copies of all steps
	Changes  int // of those, with another amount
}

const (
	mostSends = 3 // of an order
	changed   = 2 // percent of the orders have another amount sent under their key
)

// NewPlan makes the plan for so many orders: the same one for the same seed.
// An order is sent once, twice or three times, as often each; half of the
// repetitions go out together with the first message, the others later.
func NewPlan(seed uint64, orders int) *Plan {
	r := rand.New(rand.NewPCG(seed, uint64(orders)))
	p := &Plan{Orders: make([]Order, orders)}
	var steps []placed
	put := func(at float64, s Step) {
		steps = append(steps, placed{at, s})
		p.Messages += s.Copies
	}
	later := func(i int) float64 { return float64(i) + 1 + r.Float64()*max(5, float64(orders)/8) }
	for i := range p.Orders {
		p.Orders[i] = Order{ID: fmt.Sprintf("order-%05d", i+1), Amount: 100 + r.Int64N(100_000)}
		first := Step{Order: i, Copies: 1}
		for range r.IntN(mostSends) {
			if r.IntN(2) == 0 {
				first.Copies++
			} else {
				put(later(i), Step{Kind: Again, Order: i, Copies: 1})
			}
		}
		put(float64(i), first)
	}
	p.Changes = max(1, orders*changed/100)
	for _, i := range r.Perm(orders)[:p.Changes] {
		put(later(i), Step{Kind: Changed, Order: i, Copies: 1})
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
	}
	return p
}

// placed is a step and where in the plan it belongs.
type placed struct {
	at float64
	Step
}
