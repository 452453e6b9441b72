package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

var listChecks = []check{
	{"returns each record unchanged", listAll},
	{"filters by operation, tenant and state", listFilters},
	{"filters by key and by the hash that logs show", listKeys},
	{"finds the records in doubt, however they came into doubt", listDoubts},
	{"filters by idle time", listIdle},
	{"keeps the limit", listLimit},
	{"stops when its reader stops", listBreak},
	{"returns expired and lapsed records", listOver},
	{"returns an error when its context has ended", listContext},
}

// lister skips the check if the store cannot be searched.
func (b *bed) lister() store.Lister {
	l, ok := store.As[store.Lister](b.st)
	if !ok {
		b.Skip("the store is no store.Lister")
	}
	return l
}

// list reads all that f selects.
func (b *bed) list(f store.Filter) map[store.Key]store.Found {
	b.Helper()
	got := map[store.Key]store.Found{}
	for fd, err := range b.lister().List(b.Context(), f) {
		if err != nil {
			b.Fatalf("List(%+v): %v", f, err)
		}
		if _, twice := got[fd.Record.Key]; twice {
			b.Errorf("List(%+v) gave %q twice", f, fd.Record.Key.Value)
		}
		got[fd.Record.Key] = fd
	}
	return got
}

func listAll(b *bed) {
	if got := b.list(store.Filter{}); len(got) != 0 {
		b.Errorf("List of an empty store gave %d records", len(got))
	}
	want := map[store.Key]store.Record{}
	for _, s := range states {
		for i := range 40 { // more than a page, if the store has pages
			r := b.put(key(fmt.Sprint(s, i)), s, long)
			want[r.Key] = r
		}
	}
	start := time.Now()
	now := b.get(key(fmt.Sprint(store.Started, 0))).Now
	got := b.list(store.Filter{})
	if len(got) != len(want) {
		b.Errorf("List gave %d records of %d", len(got), len(want))
	}
	for k, f := range got {
		if d := diff(want[k], f.Record); d != "" {
			b.Errorf("List gave %q changed: %s", k.Value, d)
		}
		b.near("Now of a listed record", f.Now, now, start)
		if f.Won {
			b.Errorf("List gave %q as won", k.Value)
		}
	}
}

func listFilters(b *bed) {
	all := map[store.Key]store.State{}
	for _, op := range []string{"a", "ab", "A", "a%", "a_"} {
		for _, tenant := range []string{"", "t", "T", "t%"} {
			for _, s := range states {
				r := b.put(store.Key{Operation: op, Tenant: tenant, Value: s.String()}, s, long)
				all[r.Key] = s
			}
		}
	}
	for _, op := range []string{"", "a", "ab", "a%", "b"} {
		for _, tenant := range []string{"", "t", "t%", "u"} {
			for _, ss := range [][]store.State{nil, {}, {store.Unknown}, {store.Processing, store.Failed}, states} {
				want := 0
				for k, s := range all {
					if (op == "" || op == k.Operation) && (tenant == "" || tenant == k.Tenant) && (len(ss) == 0 || slices.Contains(ss, s)) {
						want++
					}
				}
				f := store.Filter{Operation: op, Tenant: tenant, States: ss}
				got := b.list(f)
				for _, fd := range got {
					if !f.Match(&fd.Record, fd.Now) {
						b.Errorf("List(%+v) gave %+v", f, fd.Record.Key)
					}
				}
				if len(got) != want {
					b.Errorf("List(%+v) gave %d records, want %d", f, len(got), want)
				}
			}
		}
	}
}

func listKeys(b *bed) {
	order := b.put(store.Key{Operation: "pay", Tenant: "t", Value: "order-17"}, store.Completed, long).Key // its ID begins with its place in an order
	again := b.put(store.Key{Operation: "refund", Tenant: "u", Value: "order-17"}, store.Unknown, long).Key
	shared := b.put(store.Key{Operation: "pay", Value: "8e03978e-40d5-43dd-bc93-6894a57f9324"}, store.Processing, long).Key
	like := b.put(store.Key{Operation: "pay", Tenant: "t", Value: order.Short()}, store.Failed, long).Key // a key that looks like a hash
	bytes := b.put(store.Key{Operation: "p\xffy", Tenant: "t\xff", Value: "k\xff"}, store.Released, long).Key
	for _, c := range []struct {
		filter store.Filter
		want   []store.Key
	}{
		{store.Filter{Keys: []string{}}, []store.Key{order, again, shared, like, bytes}},
		{store.Filter{Keys: []string{"order-17"}}, []store.Key{order, again}},
		{store.Filter{Keys: []string{"order-17"}, Operation: "pay"}, []store.Key{order}},
		{store.Filter{Keys: []string{"order-17"}, States: []store.State{store.Unknown}}, []store.Key{again}},
		{store.Filter{Keys: []string{"order-17"}, States: []store.State{store.Completed, store.Failed}}, []store.Key{order}},
		{store.Filter{Keys: []string{"order-1"}}, nil},
		{store.Filter{Keys: []string{"Order-17"}}, nil},
		{store.Filter{Keys: []string{order.Short()}}, []store.Key{order, like}},
		{store.Filter{Keys: []string{strings.ToUpper(shared.Short()), "order-17"}}, []store.Key{shared, order, again}},
		{store.Filter{Keys: []string{again.Short(), bytes.Short()}}, []store.Key{again, bytes}},
		{store.Filter{Keys: []string{again.Short(), bytes.Short(), "nobody"}}, []store.Key{again, bytes}},
		{store.Filter{Keys: []string{"nobody", bytes.Value, like.Short()}}, []store.Key{bytes, like}},
		{store.Filter{Keys: []string{"00000000", "nobody"}}, nil},
	} {
		got := b.list(c.filter)
		for _, k := range c.want {
			if _, ok := got[k]; !ok {
				b.Errorf("List(%+v) leaves out %+v", c.filter, k)
			}
		}
		if len(got) != len(c.want) {
			b.Errorf("List(%+v) gave %d records, want %d", c.filter, len(got), len(c.want))
		}
	}
}

// doubts fails unless the records of these keys, and no others, are in doubt.
func (b *bed) doubts(when string, keys ...string) {
	b.Helper()
	var got []string
	for k := range b.list(store.Filter{States: []store.State{store.Unknown}}) {
		got = append(got, k.Value)
	}
	slices.Sort(got)
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		b.Errorf("%s: %q are in doubt, want %q", when, got, keys)
	}
}

func listDoubts(b *bed) {
	settled := b.put(key("settled"), store.Unknown, long)
	b.put(key("completed"), store.Completed, long)
	claimed := b.claim(proposal(key("claimed"), store.Unknown)).Record
	running := b.put(key("swapped"), store.Processing, long)
	swapped := b.swap(running.Seen(), proposal(key("swapped"), store.Unknown)).Record
	b.doubts("parked by a settlement, a claim and a swap", "settled", "claimed", "swapped")
	again := b.swap(swapped.Seen(), proposal(key("swapped"), store.Unknown)).Record
	b.doubts("parked again", "settled", "claimed", "swapped")
	running = b.swap(settled.Seen(), proposal(key("settled"), store.Processing)).Record
	b.swap(claimed.Seen(), proposal(key("claimed"), store.Released))
	b.swap(again.Seen(), proposal(key("swapped"), store.Completed))
	b.doubts("claimed, released and completed")
	b.settle(running.Lease(), settlement(store.Unknown, long))
	b.doubts("parked after a second run", "settled")
	b.sweepAll(10)
	b.doubts("after a sweep", "settled")
}

func txDoubt(b *bed) {
	b.lister()
	was := b.put(key("swapped"), store.Released, long)
	for _, commit := range []bool{false, true} {
		tx := b.begin()
		f, err := tx.Swap(b.Context(), was.Seen(), proposal(key("swapped"), store.Unknown))
		if err != nil || !f.Won {
			b.Fatalf("Swap in a transaction: won %v, error %v", f.Won, err)
		}
		if !commit {
			b.ok("Rollback", tx.Rollback(b.Context()))
			b.doubts("after the rollback")
			continue
		}
		b.ok("Commit", tx.Commit(b.Context()))
		b.doubts("after the commit", "swapped")
	}
}

func listIdle(b *bed) {
	if b.h.Advance == nil {
		b.put(key("busy"), store.Unknown, long)
		if got := b.list(store.Filter{Idle: long}); len(got) != 0 {
			b.Errorf("List gave %d records idle for an hour, and none is as old", len(got))
		}
		b.until("a record is idle for a millisecond", func() bool { return len(b.list(store.Filter{Idle: time.Millisecond})) == 1 })
		return
	}
	old := b.put(key("old"), store.Unknown, long)
	b.h.Advance(b.TB, b.st, 10*time.Minute)
	b.put(key("new"), store.Unknown, long)
	got := b.list(store.Filter{Idle: 10 * time.Minute})
	if _, ok := got[old.Key]; !ok || len(got) != 1 {
		b.Errorf("List gave %d records idle for 10m, the old one among them: %v; want that one", len(got), ok)
	}
	if got := b.list(store.Filter{Idle: 11 * time.Minute}); len(got) != 0 {
		b.Errorf("List gave %d records idle for 11m, want none", len(got))
	}
}

// until polls for an event that real time brings.
func (b *bed) until(what string, happened func() bool) {
	b.Helper()
	for start := time.Now(); !happened(); {
		if time.Since(start) > patience {
			b.Fatalf("waited %v until %s", patience, what)
		}
		breathe()
	}
}

func listLimit(b *bed) {
	for i := range 30 {
		b.put(key(fmt.Sprint("limit", i)), states[i%len(states)], long)
	}
	for limit, want := range map[int]int{0: 30, 1: 1, 7: 7, 30: 30, 31: 30} {
		if got := b.list(store.Filter{Limit: limit}); len(got) != want {
			b.Errorf("List with limit %d gave %d records, want %d", limit, len(got), want)
		}
	}
	if got := b.list(store.Filter{Limit: 3, States: []store.State{store.Unknown}}); len(got) != 3 {
		b.Errorf("List of Unknown with limit 3 gave %d records of 5", len(got))
	}
}

func listBreak(b *bed) {
	for i := range 20 {
		b.put(key(fmt.Sprint("break", i)), store.Completed, long)
	}
	for range 10 { // a handle that is not given back would run out
		given := 0
		for _, err := range b.lister().List(b.Context(), store.Filter{}) {
			if err != nil {
				b.Fatalf("List: %v", err)
			}
			if given++; given == 2 {
				break
			}
		}
	}
	b.put(key("after"), store.Completed, long)
	if got := b.list(store.Filter{}); len(got) != 21 {
		b.Errorf("List gave %d records of 21 after others were left early", len(got))
	}
}

func listOver(b *bed) {
	b.put(key("lasts"), store.Completed, long)
	for _, s := range states[:5] {
		was := b.put(key(s.String()), s, b.short())
		b.outlive(was.Key)
		f, ok := b.list(store.Filter{States: []store.State{s}})[was.Key]
		if !ok {
			b.Errorf("List leaves out a %v record whose time is up", s)
		} else if d := diff(was, f.Record); d != "" {
			b.Errorf("List gave a %v record whose time is up changed: %s", s, d)
		}
		if _, ok := b.list(store.Filter{Expired: true})[was.Key]; ok != !was.Expires.IsZero() {
			b.Errorf("List of the expired records has the %v one whose time is up: %v", s, ok)
		}
	}
	for k, f := range b.list(store.Filter{Expired: true}) {
		if !f.Record.Expired(f.Now) {
			b.Errorf("List of the expired records gave %q, which is %v and has not expired", k.Value, f.Record.State)
		}
	}
}

func listContext(b *bed) {
	b.put(key("context"), store.Completed, long)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	for f, err := range b.lister().List(ctx, store.Filter{}) {
		if err == nil {
			b.Errorf("List with a cancelled context gave %q", f.Record.Key.Value)
		}
		return
	}
	b.Errorf("List with a cancelled context ended without an error: it reads as if there were no records")
}
