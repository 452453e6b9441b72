package orders

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is a way in which an order is wrong: a code for programs, which Text makes
// readable.
type Mistake string

// The mistakes that an audit finds.
const (
	PaidTwice     Mistake = "paid_more_than_once"
	PaidNotBooked Mistake = "paid_and_not_booked"
	BookedNotPaid Mistake = "booked_and_not_paid"
	HeldTwice     Mistake = "with_more_than_one_piece_held"
	HeldNotBooked Mistake = "with_a_piece_held_and_not_booked"
	BookedNotHeld Mistake = "booked_and_no_piece_held"
	BookedTwice   Mistake = "booked_more_than_once"
	NotEnded      Mistake = "not_ended"
	Overdone      Mistake = "with_more_undone_than_done"
	Repeated      Mistake = "with_a_step_done_and_undone_needlessly"
	WrongSequence Mistake = "undone_in_the_wrong_sequence"
	WrongAmount   Mistake = "with_a_wrong_amount"
	WrongEnd      Mistake = "with_the_wrong_end"
	WrongAnswer   Mistake = "reported_with_an_end_that_is_not_in_the_books"
)

// Mistakes are all mistakes, in the sequence of a report.
var Mistakes = []Mistake{
	PaidTwice, PaidNotBooked, BookedNotPaid, HeldTwice, HeldNotBooked, BookedNotHeld, BookedTwice, NotEnded,
	Overdone, Repeated, WrongSequence, WrongAmount, WrongEnd, WrongAnswer,
}

// Text is the mistake in words that follow "orders".
func (m Mistake) Text() string { return strings.ReplaceAll(string(m), "_", " ") }

// Findings are the result of an audit. Each order is Booked, Refused, Undone or Wrong.
type Findings struct {
	Booked  int
	Refused int // by the first step, with nothing to undo
	Undone  int // refused by a later step, and undone
	Wrong   int // with a mistake
	// Counts counts the orders with each mistake. An order may have several.
	Counts map[Mistake]int
	// Stray counts the movements of orders that nobody placed, and Unbalanced the
	// accounts that differ from the sum of their movements.
	Stray, Unbalanced int
	// Money is how many cents the bank has beyond the price of the booked orders, and
	// Pieces how many pieces the stock lacks beyond one for each.
	Money, Pieces int64
}

// Audit compares the orders with the books of the systems, and the answers of the app
// with both.
func Audit(plan []Order, answers map[string]Answer, b *Books) Findings {
	f := Findings{Counts: map[Mistake]int{}, Money: b.Bank, Pieces: pieces - b.Stock}
	of := map[string][]Movement{}
	sums := map[string]int64{bank: 0, stock: pieces}
	for _, m := range b.Movements {
		of[m.Order] = append(of[m.Order], m)
		sums[account(m.Step)] += m.Amount
	}
	for name, amount := range map[string]int64{bank: b.Bank, stock: b.Stock} {
		if sums[name] != amount {
			f.Unbalanced++
		}
	}
	for i := range plan {
		o := &plan[i]
		c := countOf(o, of[o.ID])
		delete(of, o.ID)
		if c.booked > 0 {
			f.Money -= o.Cents
			f.Pieces--
		}
		mistakes := c.mistakes(o, answers[o.ID].End)
		for _, m := range mistakes {
			f.Counts[m]++
		}
		switch {
		case len(mistakes) > 0:
			f.Wrong++
		case c.booked > 0:
			f.Booked++
		case c.paid == 0:
			f.Refused++
		default:
			f.Undone++
		}
	}
	for _, movements := range of {
		f.Stray += len(movements)
	}
	return f
}

// Sentences says what is wrong. It is empty if all adds up.
func (f *Findings) Sentences() (all []string) {
	for _, m := range Mistakes {
		if n := f.Counts[m]; n > 0 {
			all = append(all, fmt.Sprintf("%d orders %s", n, m.Text()))
		}
	}
	if f.Stray > 0 {
		all = append(all, fmt.Sprintf("%d movements of orders that nobody placed", f.Stray))
	}
	if f.Unbalanced > 0 {
		all = append(all, fmt.Sprintf("%d accounts differ from the sum of their movements", f.Unbalanced))
	}
	return append(all, f.Excess()...)
}

// Excess says how money and stock differ from the booked orders. It is empty if they do
// not.
func (f *Findings) Excess() (all []string) {
	if f.Money != 0 {
		all = append(all, fmt.Sprintf("the bank has %s %s than the booked orders cost", Money(max(f.Money, -f.Money)), moreOrLess(f.Money)))
	}
	if f.Pieces != 0 {
		all = append(all, fmt.Sprintf("the stock lacks %d pieces %s than were booked", max(f.Pieces, -f.Pieces), moreOrLess(f.Pieces)))
	}
	return all
}

func moreOrLess(n int64) string {
	if n < 0 {
		return "less"
	}
	return "more"
}

// Money writes cents as 12.34.
func Money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// counts are the movements of one order.
type counts struct {
	paid, refunded, held, released, booked int

	wrongAmount, wrongSequence, undoesNothing bool
}

func countOf(o *Order, movements []Movement) (c counts) {
	done := map[string]Step{} // by key, the steps that are not undone
	var sequence []string
	for _, m := range movements {
		c.wrongAmount = c.wrongAmount || m.Amount != amount(m.Step, o.Cents)
		switch m.Step {
		case Pay:
			c.paid++
		case Hold:
			c.held++
		case Book:
			c.booked++
		case Refund:
			c.refunded++
		case Release:
			c.released++
		default:
			c.wrongAmount = true
		}
		undone := map[Step]Step{Refund: Pay, Release: Hold}[m.Step]
		if undone == "" {
			done[m.Key] = m.Step
			sequence = append(sequence, m.Key)
			continue
		}
		if done[m.Undoes] != undone {
			c.undoesNothing = true
			continue
		}
		at := slices.Index(sequence, m.Undoes)
		c.wrongSequence = c.wrongSequence || at != len(sequence)-1
		sequence = slices.Delete(sequence, at, at+1)
		delete(done, m.Undoes)
	}
	return c
}

// mistakes are what is wrong with an order of which the app says that it ended so.
func (c *counts) mistakes(o *Order, end End) (all []Mistake) {
	add := func(wrong bool, m Mistake) {
		if wrong {
			all = append(all, m)
		}
	}
	paid, held, booked := c.paid-c.refunded, c.held-c.released, c.booked > 0
	add(booked && paid > 1, PaidTwice)
	add(!booked && paid > 0, PaidNotBooked)
	add(booked && paid < 1, BookedNotPaid)
	add(booked && held > 1, HeldTwice)
	add(!booked && held > 0, HeldNotBooked)
	add(booked && held < 1, BookedNotHeld)
	add(c.booked > 1, BookedTwice)
	add(end == Open, NotEnded)
	add(c.undoesNothing || paid < 0 || held < 0, Overdone)
	add(c.wrongSequence, WrongSequence)
	add(c.wrongAmount, WrongAmount)
	add(end != Open && booked != (end == Booked), WrongAnswer)
	add(end != Open && booked != (o.Refuser == ""), WrongEnd)
	// The steps before the refusal are made once and undone once, and no others.
	exact := counts{paid: 1, refunded: 1}
	switch o.Refuser {
	case "":
		exact = counts{paid: 1, held: 1, booked: 1}
	case Pay:
		exact = counts{}
	case Book:
		exact = counts{paid: 1, refunded: 1, held: 1, released: 1}
	}
	add(len(all) == 0 && *c != exact, Repeated)
	return all
}
