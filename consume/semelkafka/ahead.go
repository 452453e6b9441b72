package semelkafka

import (
	"context"
	"slices"
	"sync"

	"github.com/semel-go/semel/consume/driver"
)

// Preparer is what a [Ledger] may be besides: one that can begin the work of a
// batch while the one before it is handled. Prepare is called in the order in
// which batches are to be handled, at the same time as the Handle of the one
// before, but not as anything else, and must change nothing that counts. Then
// Prepared.Handle is called in place of Ledger.Handle, when all before are
// handled; or Drop, if the batch does not come as it was expected.
type Preparer interface {
	Prepare(ctx context.Context, batch []Item) Prepared
}

// Prepared is a batch that is prepared. One of its methods is called, once.
type Prepared interface {
	Handle(ctx context.Context) []driver.Result
	Drop()
}

// ahead is the batch behind the one that is handled.
type ahead struct {
	ds    []*work
	err   error // of the source
	items []Item
	is    Prepared
}

// besides handles a batch, and looks ahead meanwhile: to prepare a batch costs
// this process as much as it waits for the database in another.
func (b *batches) besides(ctx context.Context, p Preparer, is Prepared) []driver.Result {
	var looks sync.WaitGroup
	defer looks.Wait() // also if the handler leaves by runtime.Goexit: what is ahead is the loop's
	looks.Go(func() { b.lookAhead(ctx, p) })
	return is.Handle(ctx)
}

// lookAhead takes the next batch and prepares it. It takes a full one, or none:
// of a few that have come, more are to come until they can be handled.
func (b *batches) lookAhead(ctx context.Context, p Preparer) {
	if b.outage || len(b.held) > 0 {
		return
	}
	a := &ahead{}
	b.ahead = a
	var ds []driver.Delivery
	if ds, a.err = b.s.nextFull(MostInBatch); len(ds) == 0 {
		return
	}
	a.ds = newWorks(ds)
	slices.SortFunc(a.ds, compareWorks)
	a.items = itemsOf(a.ds)
	a.is = p.Prepare(ctx, a.items)
}

// taken is what was taken ahead, once.
func (b *batches) taken(ctx context.Context) ([]*work, error) {
	a := b.ahead
	if a == nil {
		return nil, nil
	}
	ds, err := a.ds, a.err
	a.ds, a.err = nil, nil
	if b.outage { // nothing is taken until it is over
		for _, d := range ds {
			_ = d.Nak(ctx, 0) // the next Next gives it again
		}
		ds = nil
	}
	return ds, err
}

// prepared is what was prepared of a batch, nil if that was another one, and its
// items.
func (b *batches) prepared(batch []*work) (Prepared, []Item) {
	a := b.ahead
	if b.ahead = nil; a != nil && a.is != nil {
		if slices.EqualFunc(a.items, batch, func(it Item, w *work) bool { return it.Message == w.m }) {
			return a.is, a.items
		}
		a.is.Drop()
	}
	return nil, itemsOf(batch)
}

func itemsOf(batch []*work) []Item {
	items := make([]Item, len(batch))
	for i, w := range batch {
		items[i] = w.it
	}
	return items
}

// drop gives up what was taken ahead.
func (b *batches) drop(ctx context.Context) {
	ds, _ := b.taken(ctx)
	for _, d := range ds {
		_ = d.Nak(ctx, 0)
	}
	b.prepared(nil)
}
