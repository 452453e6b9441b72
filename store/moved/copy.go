package moved

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel/store"
)

// CopyOptions configures Copy. Nil and the zero value mean the defaults.
type CopyOptions struct {
	// Workers is how many records are copied at the same time: 16 by default.
	Workers int
	// DryRun counts, and changes nothing.
	DryRun bool
	// InFlight is called with each record that is in flight and is not copied. Nil: they
	// are only counted. Calls may overlap.
	InFlight func(store.Record)
	// Unreadable is called with the error of each record that cannot be read in one of the
	// stores, and is left. Nil: they are only counted. Calls may overlap.
	Unreadable func(error)
	// Progress is called now and then with the counts so far, by one goroutine at a time.
	Progress func(CopyStats)
}

// CopyStats are the counts of a copy.
type CopyStats struct {
	Read    int64 `json:"read"`
	Copied  int64 `json:"copied"`
	There   int64 `json:"already_there"` // in the new store, as late or later
	Expired int64 `json:"expired"`
	// InFlight were being run in the old store, and were not copied.
	InFlight   int64 `json:"in_flight"`
	Tombstones int64 `json:"tombstones"` // among the copied: the answer was too large for the new store
	Unreadable int64 `json:"unreadable"`
}

const (
	defaultWorkers = 16
	progressEvery  = 1000 // records
)

// Copy copies all records of the old store that have not expired to the new one, except
// those in flight: calls whose lease has not ended. It never overwrites a record of the
// new store's own; a record that Copy has brought before is replaced
// only by a later version of itself. Copy may be ended at any time and run again, and
// calls may go on in the meantime. It needs the same memory for any number of records,
// except in memstore. A record that cannot be read (store.ErrCorrupt) is counted and left. Any
// other error ends Copy; the counts say how far it came.
func Copy(ctx context.Context, to, from store.Store, o *CopyOptions) (CopyStats, error) {
	if o == nil {
		o = &CopyOptions{}
	}
	m, err := newMover(to, from)
	if err != nil {
		return CopyStats{}, err
	}
	list, ok := store.As[store.Lister](from)
	if !ok {
		return CopyStats{}, errors.New("moved: the old store cannot list its records; it must implement store.Lister")
	}
	run := &copying{options: o, mover: m, found: make(chan store.Found)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := o.Workers
	if workers <= 0 {
		workers = defaultWorkers
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for f := range run.found {
				if err := run.copy(ctx, &f); errors.Is(err, store.ErrCorrupt) {
					run.unreadable(err)
				} else if err != nil {
					cancel(err)
				}
			}
		})
	}
	err = run.read(ctx, list)
	close(run.found)
	all.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return run.statsSoFar(), err
}

// copying is one run of Copy.
type copying struct {
	options *CopyOptions
	mover   *mover
	found   chan store.Found

	mu    sync.Mutex
	stats CopyStats
}

// count adds one to a field of stats, and returns the sum.
func (c *copying) count(field *int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field++
	return *field
}

func (c *copying) statsSoFar() CopyStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// read hands the records of the old store to the workers.
func (c *copying) read(ctx context.Context, list store.Lister) error {
	for f, err := range list.List(ctx, store.Filter{Repeats: true}) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			c.unreadable(err)
			continue
		case err != nil:
			return fmt.Errorf("moved: list the old store: %w", err)
		}
		select {
		case c.found <- f:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if n := c.count(&c.stats.Read); n%progressEvery == 0 && c.options.Progress != nil {
			c.options.Progress(c.statsSoFar())
		}
	}
	return nil
}

func (c *copying) unreadable(err error) {
	c.count(&c.stats.Unreadable)
	if c.options.Unreadable != nil {
		c.options.Unreadable(err)
	}
}

// copy copies one record.
func (c *copying) copy(ctx context.Context, f *store.Found) error {
	for range maxReads {
		r := &f.Record
		switch {
		case r.Expired(f.Now):
			c.count(&c.stats.Expired)
			return nil
		case r.State == store.Processing && !r.Lapsed(f.Now):
			c.count(&c.stats.InFlight)
			if c.options.InFlight != nil {
				c.options.InFlight(*r)
			}
			return nil
		case c.options.DryRun:
			return c.wouldCopy(ctx, r)
		}
		got, tombstone, err := c.mover.move(ctx, r)
		switch {
		case err == nil:
			c.countReceived(got.Won, tombstone)
			return nil
		case !errors.Is(err, errChanged):
			return err
		}
		if *f, err = c.mover.from.Get(ctx, r.Key); errors.Is(err, store.ErrNotFound) {
			c.count(&c.stats.Expired) // it was swept
			return nil
		} else if err != nil {
			return fmt.Errorf("moved: read the old store: %w", err)
		}
	}
	c.count(&c.stats.InFlight) // a busy key
	return nil
}

// countReceived counts an answer of store.Receiver.
func (c *copying) countReceived(written, tombstone bool) {
	if !written {
		c.count(&c.stats.There)
		return
	}
	c.count(&c.stats.Copied)
	if tombstone {
		c.count(&c.stats.Tombstones)
	}
}

// wouldCopy counts what move would do.
func (c *copying) wouldCopy(ctx context.Context, r *store.Record) error {
	_, ok, err := c.mover.inNewStore(ctx, r)
	if err == nil {
		c.countReceived(!ok, false)
	}
	return err
}
