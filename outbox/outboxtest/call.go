package outboxtest

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// putIn writes messages in the handler of a call, the last one in a step of it, and returns
// the key of the call's record.
func (b *bed) putIn(g *semel.Guard, key string, ms ...outbox.Message) (k store.Key) {
	b.t.Helper()
	tx := b.begin(b.t)
	call := semel.Call{Operation: "order", Tenant: "ann", Key: key, Payload: semel.NoPayload()}
	b.must(semel.Once(b.ctx, g, call, func(ctx context.Context, x *semel.Execution) error {
		k = store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
		last := len(ms) - 1
		if err := tx.Put(ctx, ms[:last]...); err != nil {
			return err
		}
		return semel.Once(ctx, g, x.Step("tell"), func(ctx context.Context, _ *semel.Execution) error { return tx.Put(ctx, ms[last]) })
	}))
	b.must(tx.Commit())
	return k
}

// guard makes a Guard over a store of its own.
func (b *bed) guard(o *semel.Options) *semel.Guard {
	b.t.Helper()
	g, err := semel.New(memstore.New(nil), o)
	b.must(err)
	return g
}

// call writes messages of several calls, and of none, and brings them into each state.
func (b *bed) call() {
	plain, hashing := b.guard(nil), b.guard(&semel.Options{HashKeys: make([]byte, 32)})
	mine := b.putIn(plain, "order-17", message("stopped", 0), message("stopped", 1), message("sent", 0), message("new", 0))
	other := b.putIn(plain, "order-18", message("stopped", 2), message("sent", 1), message("new", 1))
	hashed := b.putIn(hashing, "order-17", message("new", 2))
	b.put(message("stopped", 3), message("sent", 2), message("new", 3))
	for _, id := range []string{"stopped-0", "sent-0", "sent-1", "sent-2"} {
		taken := b.take(100)
		i := slices.IndexFunc(taken, func(t outbox.Taken) bool { return t.ID == id })
		if i < 0 {
			b.t.Fatalf("taken %q, without %s", ids(taken), id)
		}
		r := outbox.Result{Taken: &taken[i], Kind: outbox.Delivered, Keep: true, Error: "it failed"}
		if id == "stopped-0" {
			r.Kind = outbox.Refused
		}
		b.must(b.Settle(b.ctx, []outbox.Result{r}))
	}
	b.take(100) // holds the later ones of the key that has stopped

	quarantined, held, sent, waiting := outbox.Quarantined, outbox.Held, outbox.Sent, outbox.Waiting
	b.wantCall(outbox.CallHash(mine), mine, []string{"stopped-0", "stopped-1", "new-0", "sent-0"}, quarantined, held, waiting, sent)
	b.wantCall(outbox.CallHash(other), other, []string{"stopped-2", "new-1", "sent-1"}, held, waiting, sent)
	b.wantCall(outbox.CallHash(hashed), hashed, []string{"new-2"}, waiting)
	b.wantCall(mine.Short(), mine, []string{"stopped-0", "stopped-1", "new-0", "sent-0"}, quarantined, held, waiting, sent)
	b.wantCall(outbox.CallHash(store.Key{Operation: "order", Value: "order-19"}), mine, nil)
	for _, t := range b.take(100) {
		if want := map[string]string{"new-0": outbox.CallHash(mine), "new-1": outbox.CallHash(other), "new-2": outbox.CallHash(hashed), "new-3": ""}[t.ID]; t.Call != want {
			b.t.Errorf("Take returns %s with the call %q, want %q", t.ID, t.Call, want)
		}
	}
	for _, wrong := range []string{"", "order-17", "8e03978", "8e03978e8e03978e8", "8e03978g"} {
		if entries, err := b.ListCall(b.ctx, wrong, 10); err == nil {
			b.t.Errorf("ListCall of %q returns %v; want an error", wrong, entries)
		}
	}
}

// wantCall compares the messages of a call.
func (b *bed) wantCall(hash string, k store.Key, want []string, states ...outbox.State) {
	b.t.Helper()
	entries, err := b.ListCall(b.ctx, hash, 100)
	b.must(err)
	var got []string
	for i := range entries {
		e := &entries[i]
		got = append(got, e.ID)
		if i < len(states) && e.State != states[i] || e.Call != outbox.CallHash(k) || e.Body != nil || e.Written.IsZero() || (e.LastError == "it failed") != (e.State == outbox.Quarantined) {
			b.t.Errorf("ListCall returns %+v, want one of call %s", e, outbox.CallHash(k))
		}
		one, err := b.Get(b.ctx, e.Position)
		b.must(err)
		if one.Call != e.Call || one.State != e.State {
			b.t.Errorf("Get returns %+v, and ListCall %+v", one, e)
		}
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("ListCall of %s returns %q, want %q", hash, got, want)
	}
	if len(want) < 2 {
		return
	}
	first, err := b.ListCall(b.ctx, hash, 1)
	b.must(err)
	if len(first) != 1 || first[0].ID != want[0] {
		b.t.Errorf("ListCall with limit 1 returns %+v, want %s", first, want[0])
	}
}
