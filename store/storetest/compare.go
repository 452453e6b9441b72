package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// comparison is how exactly the answers of two sides have to agree.
type comparison struct {
	// times: both clocks show the same time, so all times are compared. If not
	// set, each record's times are compared with its Updated.
	times bool
	// fences: both sides make the same fences. If not set, only the order of the
	// fences is compared.
	fences bool
}

// results says how b's answer to a step differs from a's; empty: it does not.
func (c *comparison) results(p *step, a, b *side, ra, rb *result) string {
	switch {
	case ra.skipped != rb.skipped || ra.key != rb.key:
		return "the actors' memories differ"
	case ra.answer != rb.answer:
		return fmt.Sprintf("the answer is %v, want %v", rb.answer, ra.answer)
	case ra.action != rb.action:
		return fmt.Sprintf("Decide says %v, want %v", rb.action, ra.action)
	case ra.found.Won != rb.found.Won:
		return fmt.Sprintf("won %v, want %v", rb.found.Won, ra.found.Won)
	case ra.has != rb.has:
		return fmt.Sprintf("a record came back: %v, want %v", rb.has, ra.has)
	case !slices.Equal(ra.renewals, rb.renewals):
		return fmt.Sprintf("renewals %v, want %v", rb.renewals, ra.renewals)
	case ra.deleted != rb.deleted:
		return fmt.Sprintf("swept %d, want %d", rb.deleted, ra.deleted)
	case ra.mustLose && (ra.found.Won || p.deed == doSettleWrong && ra.answer != leaseLost):
		return "both stores made a change whose comparison fails"
	}
	if ra.has {
		if d := c.found(&ra.found, &rb.found); d != "" {
			return d
		}
	}
	if p.deed == doSweep && p.limit() > 10 {
		return c.lapsed(ra.lapsed, rb.lapsed)
	}
	return ""
}

// lapsed compares what a whole pass handed back.
func (c *comparison) lapsed(a, b []store.Record) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d lapsed records handed back, want %d", len(b), len(a))
	}
	for i := range a {
		j := slices.IndexFunc(b, func(r store.Record) bool { return r.Key == a[i].Key })
		if j < 0 {
			return fmt.Sprintf("lapsed record of %q not handed back", a[i].Key.Value)
		}
		if d := c.records(&a[i], &b[j]); d != "" {
			return "lapsed record: " + d
		}
	}
	return ""
}

func (c *comparison) found(a, b *store.Found) string {
	if c.times && a.Now != b.Now {
		return fmt.Sprintf("Now is %v, want %v", b.Now, a.Now)
	}
	return c.records(&a.Record, &b.Record)
}

func (c *comparison) records(a, b *store.Record) string {
	if c.times && c.fences {
		if same(a, b) {
			return ""
		}
		return diff(*a, *b)
	}
	x, y := *a, *b
	if !c.fences {
		x.Fence, y.Fence = 0, 0 // ranks compares them
	}
	if !c.times {
		x, y = relative(x), relative(y)
	}
	return diff(x, y)
}

// relative is r with its times counted from Updated.
func relative(r store.Record) store.Record {
	from := r.Updated
	for _, t := range []*time.Time{&r.Until, &r.Completed, &r.Expires} {
		if !t.IsZero() {
			*t = store.Time(1e15).Add(t.Sub(from))
		}
	}
	r.Updated, r.Created = time.Time{}, time.Time{}
	return r
}

// states compares what the two sides hold of one key after a step.
func (c *comparison) states(a, b *side, k int) string {
	x, y := &a.after[k], &b.after[k]
	if x.there != y.there {
		return fmt.Sprintf("there is a record: %v, want %v", y.there, x.there)
	}
	if a.rank[k].n != b.rank[k].n {
		return fmt.Sprintf("the fence has grown %d times, want %d times", b.rank[k].n, a.rank[k].n)
	}
	if !x.there {
		return ""
	}
	if a.before[k].there && b.before[k].there {
		kept := func(s *side) bool { return s.before[k].found.Record.Created.Equal(s.after[k].found.Record.Created) }
		if kept(a) != kept(b) {
			return fmt.Sprintf("Created stayed: %v, want %v", kept(b), kept(a))
		}
	}
	return c.records(&x.found.Record, &y.found.Record)
}
