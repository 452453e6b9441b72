// Package orders has the orders of the saga demo. An order pays, holds a piece in the
// stock and is booked, in three systems; if one of them refuses, the steps before it are
// undone. Workers do that as a saga of Semel, or without a journal of the steps. The audit
// says whether money and stock add up, from the data of the systems alone.
package orders

import (
	"fmt"
	"math/rand/v2"
)

// Order is what a customer wants.
type Order struct {
	ID string `json:"id"`
	// Refuser is the step that refuses the order; empty: none.
	Refuser Step  `json:"refuser,omitempty"`
	Cents   int64 `json:"cents"` // the price
}

// Step is a step of an order.
type Step string

// The steps of an order, in their order, and the compensations of the first two.
const (
	Pay     Step = "pay"
	Hold    Step = "hold"
	Book    Step = "book"
	Refund  Step = "refund"
	Release Step = "release"
)

// The shares of orders that a step refuses, in percent.
const unpaid, unheld, unbooked = 10, 10, 10

// NewPlan makes so many orders: the same ones for the same seed.
func NewPlan(seed uint64, n int) []Order {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	all := make([]Order, n)
	for i := range all {
		all[i] = Order{ID: fmt.Sprintf("order-%05d", i+1), Cents: 100 + r.Int64N(100_000)}
		switch p := r.IntN(100); {
		case p < unpaid:
			all[i].Refuser = Pay
		case p < unpaid+unheld:
			all[i].Refuser = Hold
		case p < unpaid+unheld+unbooked:
			all[i].Refuser = Book
		}
	}
	return all
}
