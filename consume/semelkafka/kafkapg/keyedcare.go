package kafkapg

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// begin begins with the partitions of a batch, and reports whether care is to be
// taken with one.
func (l *keyed) begin(ctx context.Context, items []semelkafka.Item) (careful bool, err error) {
	for i := range items {
		if i > 0 && items[i].Place == items[i-1].Place {
			continue
		}
		c, err := l.cares.begin(ctx, l.a.Store(), &items[i])
		if err != nil {
			return false, err
		}
		careful = careful || c.left > 0
	}
	return careful, nil
}

// unavailable ends a batch of which nothing is done.
func unavailable(items []semelkafka.Item, err error) []driver.Result {
	op := string(items[0].Place.Group)
	return slices.Repeat([]driver.Result{{Err: &semel.Error{Reason: semel.ErrUnavailable, Operation: op, Cause: err}}}, len(items))
}

// keyedCare is one batch, in parts.
type keyedCare struct {
	*keyed
	ends    []driver.Result
	blocked map[string]bool            // lanes with a message that comes again, or has failed
	lost    map[semelkafka.Place]error // partitions that are another's
	outage  error                      // nothing is run behind it
}

// carefully handles a batch in the order of its messages: alone those of
// partitions with which care is to be taken, and together what is between them.
func (l *keyed) carefully(ctx context.Context, items []semelkafka.Item) []driver.Result {
	h := &keyedCare{keyed: l, ends: make([]driver.Result, len(items)), blocked: map[string]bool{}, lost: map[semelkafka.Place]error{}}
	for i := 0; i < len(items); {
		c := l.careOf(items[i].Place)
		n := i + 1
		for c == nil && n < len(items) && l.careOf(items[n].Place) == nil {
			n++
		}
		h.part(ctx, items[i:n], h.ends[i:n], c)
		i = n
	}
	return h.ends
}

// careOf is that of a partition with which care is to be taken, else nil.
func (l *keyed) careOf(of semelkafka.Place) *care {
	if c := l.cares.known(of); c != nil && c.left > 0 {
		return c
	}
	return nil
}

// part handles some of the messages, or with c one.
func (h *keyedCare) part(ctx context.Context, items []semelkafka.Item, ends []driver.Result, c *care) {
	goes, of := make([]semelkafka.Item, 0, len(items)), make([]int, 0, len(items))
	for i := range items {
		switch it := &items[i]; {
		case h.outage != nil:
			ends[i].Err = h.outage
		case h.lost[it.Place] != nil:
			ends[i].Err = h.lost[it.Place]
		case it.OrderKey != "" && h.blocked[it.OrderKey]:
			ends[i].Err = waits("")
		default:
			goes, of = append(goes, *it), append(of, i)
		}
	}
	if len(goes) == 0 {
		return
	}
	r := h.newRun(goes)
	defer r.giveBack()
	r.care = c
	r.next = h.a.Prefetcher().Prefetch(ctx, r.calls) // alone: what was prepared is before it in the ledger's own
	for n, end := range r.ends(r.next.Run(ctx, r.run)) {
		ends[of[n]] = end
		h.ended(ctx, r, &goes[n], end)
	}
}

// ended sees to what the end of a message means for those behind it.
func (h *keyedCare) ended(ctx context.Context, r *keyedRun, it *semelkafka.Item, end driver.Result) {
	d := driver.Decide(end, driver.Policy{})
	again := d.Action == driver.Hold || d.Action == driver.Retry
	if again || end.Err != nil && end.Attempt > 0 { // its letter comes before those behind it
		h.blocked[it.OrderKey] = true
	}
	switch {
	case d.Reason == driver.ReasonUnavailable:
		h.outage = end.Err
	case d.Reason == driver.ReasonLeaseLost && r.care != nil:
		h.lost[it.Place] = end.Err
		h.cares.again(r.care)
	}
	switch {
	case again && r.noted:
		r.care.tried(ctx, it.Message, r.most)
	case !again:
		r.care.done(it.Message, end.Attempt > 0)
	}
}
