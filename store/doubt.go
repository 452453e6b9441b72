package store

import (
	"context"
	"errors"
	"time"
)

// Doubt is how many records of a store are in doubt, and for how long.
type Doubt struct {
	// Records is at most MaxDoubt.
	Records int
	// Oldest is the time since the first call of the oldest of these records, by the
	// store's clock. A reconciler that asks about a record does not make it younger.
	// Zero: there is none.
	Oldest time.Duration
}

// MaxDoubt is how many records CountInDoubt reads at most.
const MaxDoubt = 10_000

// CountInDoubt counts the records in doubt, for metrics. Each store of Semel but
// memstore finds them without reading the others: see Lister. An unreadable record
// counts, and has no age. errors.ErrUnsupported: the store cannot list records.
func CountInDoubt(ctx context.Context, st Store) (Doubt, error) {
	l, ok := As[Lister](st)
	if !ok {
		return Doubt{}, errors.ErrUnsupported
	}
	var d Doubt
	for f, err := range l.List(ctx, Filter{States: []State{Unknown}, Limit: MaxDoubt}) {
		if err != nil && !errors.Is(err, ErrCorrupt) {
			return Doubt{}, err
		}
		d.Records++
		if err == nil {
			d.Oldest = max(d.Oldest, f.Now.Sub(f.Record.Created))
		}
	}
	return d, nil
}
