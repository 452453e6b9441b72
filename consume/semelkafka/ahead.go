package semelkafka

import (
	"context"
	"slices"
	"sync"

	"github.com/semel-go/semel/consume/driver"
)

// Preparer is implemented by a [Ledger] that can begin the work of a batch
// while it handles the one before. Prepare is called in the order in which the
// batches will be handled, beside the Handle of the batch before it, and must
// change no record. Then Prepared.Handle is called in place of Ledger.Handle,
// after all earlier batches; or Drop, if another batch comes first.
type Preparer interface {
	Prepare(ctx context.Context, batch []Item) Prepared
}

// Prepared is a prepared batch. One of its methods is called, once.
type Prepared interface {
	Handle(ctx context.Context) []driver.Result
	Drop()
}

// ahead is the batch after the one that is handled.
type ahead struct {
	ds       []*work
	err      error // of the source
	items    []Item
	prepared Prepared
}

// handlePrepared handles a batch, and prepares the next one meanwhile, because
// this process is idle while it waits for the database.
func (b *batches) handlePrepared(ctx context.Context, p Preparer, batch Prepared) []driver.Result {
	var looks sync.WaitGroup
	defer looks.Wait() // also after runtime.Goexit in a handler, because the loop owns b.ahead
	looks.Go(func() { b.lookAhead(ctx, p) })
	return batch.Handle(ctx)
}

// lookAhead takes the next batch and prepares it. It takes a full batch or
// none, because a small one can still grow.
func (b *batches) lookAhead(ctx context.Context, p Preparer) {
	if b.outage || len(b.held) > 0 {
		return
	}
	a := &ahead{}
	b.ahead = a
	var ds []driver.Delivery
	if ds, a.err = b.s.nextFull(MaxBatch); len(ds) == 0 {
		return
	}
	a.ds = newWorks(ds)
	slices.SortFunc(a.ds, compareWorks)
	a.items = itemsOf(a.ds)
	a.prepared = p.Prepare(ctx, a.items)
}

// taken returns the messages that were taken ahead, once.
func (b *batches) taken(ctx context.Context) ([]*work, error) {
	a := b.ahead
	if a == nil {
		return nil, nil
	}
	ds, err := a.ds, a.err
	a.ds, a.err = nil, nil
	if b.outage { // no message is taken until the outage ends
		for _, d := range ds {
			_ = d.Nak(ctx, 0) // the next Next gives it again
		}
		ds = nil
	}
	return ds, err
}

// prepared returns the prepared form of a batch, nil if another batch was
// prepared, and its items.
func (b *batches) prepared(batch []*work) (Prepared, []Item) {
	a := b.ahead
	if b.ahead = nil; a != nil && a.prepared != nil {
		if slices.EqualFunc(a.items, batch, func(it Item, w *work) bool { return it.Message == w.m }) {
			return a.prepared, a.items
		}
		a.prepared.Drop()
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

// drop gives back the messages that were taken ahead.
func (b *batches) drop(ctx context.Context) {
	ds, _ := b.taken(ctx)
	for _, d := range ds {
		_ = d.Nak(ctx, 0)
	}
	b.prepared(nil)
}
