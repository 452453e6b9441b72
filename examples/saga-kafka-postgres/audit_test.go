//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The orders of a campaign: of each item there are fewer units than orders, so that the
// last step refuses one order in five, whichever comes last.
const (
	ordersPerItem = 5
	unitsPerItem  = 4
	firstCents    = 100_000_000
)

func customer(i int) string { return fmt.Sprint("customer", i) }

// order is the order with a number.
func order(i, customers int) event {
	return event{Order: fmt.Sprint("order", i), Customer: customer(i % customers), Item: fmt.Sprint("item", i/ordersPerItem), Cents: int64(100 + i%50)}
}

// row is an event in a history or in a topic.
type row struct{ Type, Order string }

// audit compares the databases and the topics when all is quiet.
type audit struct {
	booked, cancelled int
	copies            int // records in the topics
	// What is wrong:
	open      int // orders that are neither booked nor cancelled
	lost      int // effects and events that are missing
	double    int // effects that happened more than once
	excess    int // effects and events that contradict the end of their order
	reordered int // first copies of events that came too early
	balances  int // accounts and items that do not add up
	letters   int // dead letters and quarantined messages
	examples  []string
}

func (a *audit) wrong() int {
	return a.open + a.lost + a.double + a.excess + a.reordered + a.balances + a.letters
}

func (a *audit) String() string {
	return fmt.Sprintf("%d booked, %d cancelled, %d records; %d open, %d lost, %d double, %d in excess, %d out of order, %d wrong balances, %d letters",
		a.booked, a.cancelled, a.copies, a.open, a.lost, a.double, a.excess, a.reordered, a.balances, a.letters)
}

// note counts a mistake, and keeps the first ones for the log.
func (a *audit) note(count *int, n int, format string, args ...any) {
	if n <= 0 {
		return
	}
	*count += n
	if len(a.examples) < 20 {
		a.examples = append(a.examples, fmt.Sprintf(format, args...))
	}
}

// events are those that a service must have emitted for an order that has ended.
func events(service, state string) []string {
	booked := map[string][]string{"orders": {orderPlaced, orderBooked}, "payments": {paymentTaken}, "stock": {stockReserved}}
	cancelled := map[string][]string{"orders": {orderPlaced, orderCancelled}, "payments": {paymentTaken, paymentReturned}, "stock": {stockRefused}}
	if state == "booked" {
		return booked[service]
	}
	return cancelled[service]
}

// judge audits the orders 0 to count.
func judge(t *testing.T, c *config, b *broker, count, customers int) *audit {
	t.Helper()
	a := &audit{}
	states := read[string](t, openService(t, c, "orders"), "SELECT id, state FROM purchase")
	spent, sold := map[string]int64{}, map[string]int64{}
	for i := range count {
		o := order(i, customers)
		switch states[o.Order] {
		case "booked":
			a.booked++
			spent[o.Customer] += o.Cents
			sold[o.Item]++
		case "cancelled":
			a.cancelled++
		default:
			a.note(&a.open, 1, "%s is %q", o.Order, states[o.Order])
		}
	}
	for name, cents := range read[int64](t, openService(t, c, "payments"), "SELECT customer, cents FROM account WHERE customer LIKE 'customer%'") {
		if cents != firstCents-spent[name] {
			a.note(&a.balances, 1, "%s has %d cents, want %d", name, cents, firstCents-spent[name])
		}
	}
	for name, units := range read[int64](t, openService(t, c, "stock"), "SELECT name, units FROM item WHERE name LIKE 'item%'") {
		if units != unitsPerItem-sold[name] || units != 0 {
			a.note(&a.balances, 1, "of %s there are %d units, and %d are sold of %d", name, units, sold[name], unitsPerItem)
		}
	}
	for name := range services {
		histories := a.history(t, c, name, states)
		a.topic(t, b, name, histories)
		for _, topic := range []string{"dead-letters." + name, "quarantine." + name} {
			n, err := b.ends(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			a.note(&a.letters, int(n), "%s has %d messages", topic, n)
		}
	}
	return a
}

// history compares the history of a service with the ends of the orders, and returns the
// history of each customer.
func (a *audit) history(t *testing.T, c *config, name string, states map[string]string) map[string][]row {
	t.Helper()
	rows, err := openService(t, c, name).pool.Query(t.Context(), "SELECT type, order_id, customer FROM history ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	histories, times := map[string][]row{}, map[row]int{}
	var r row
	var of string
	if _, err := pgx.ForEachRow(rows, []any{&r.Type, &r.Order, &of}, func() error {
		histories[of] = append(histories[of], r)
		times[r]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r, n := range times {
		a.note(&a.double, n-1, "%s: %v happened %d times", name, r, n)
	}
	for order, state := range states {
		if state == "placed" {
			continue // counted as open
		}
		for _, kind := range events(name, state) {
			if times[row{kind, order}] == 0 {
				a.note(&a.lost, 1, "%s: %s is %s without %s", name, order, state, kind)
			}
			delete(times, row{kind, order})
		}
	}
	for r := range times {
		if states[r.Order] != "placed" {
			a.note(&a.excess, 1, "%s: %v happened, and the order is %s", name, r, states[r.Order])
		}
	}
	return histories
}

// topic compares the topic of a service with its history: each event is there, and the
// first copies of a customer's events are in the order of the commits.
func (a *audit) topic(t *testing.T, b *broker, name string, histories map[string][]row) {
	t.Helper()
	published := map[string][]row{} // by customer: first copies
	seen := map[row]bool{}
	for _, r := range b.records(t, name) {
		a.copies++
		var e event
		if err := json.Unmarshal(r.Value, &e); err != nil {
			t.Fatal(err)
		}
		if at := (row{e.Type, e.Order}); !seen[at] {
			seen[at] = true
			published[e.Customer] = append(published[e.Customer], at)
		}
	}
	for customer, history := range histories {
		place := map[row]int{}
		for i, r := range history {
			if place[r] == 0 { // the first time counts
				place[r] = i + 1
			}
		}
		last := 0
		for _, r := range published[customer] {
			switch {
			case place[r] == 0:
				a.note(&a.excess, 1, "topic %s: %v was published and did not happen", name, r)
				continue
			case place[r] < last:
				a.note(&a.reordered, 1, "topic %s: %v came after an event that committed later", name, r)
			}
			last = max(last, place[r])
			delete(place, r)
		}
		for r := range place {
			a.note(&a.lost, 1, "topic %s: %v happened and was not published", name, r)
		}
	}
}
