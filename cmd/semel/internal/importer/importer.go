// Package importer takes over the keys of a home-grown table, or of Redis, as completed
// records, so that a service can begin to use Semel without forgetting the requests that
// it has answered.
package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Source yields rows. Its error ends the import, unless it is a *RowError.
type Source func(ctx context.Context) iter.Seq2[Row, error]

// Begin reads the first row, so that a source that cannot be read is known before a store is
// made for it. The Source that it returns yields all rows, once. stop ends the source.
func (s Source) Begin(ctx context.Context) (begun Source, stop func(), _ error) {
	ctx, cancel := context.WithCancel(ctx)
	next, end := iter.Pull2(s(ctx))
	stop = func() { cancel(); end() }
	row, err, ok := next()
	if _, ofRow := errors.AsType[*RowError](err); err != nil && !ofRow {
		stop()
		return nil, nil, err
	}
	return func(ctx context.Context) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			defer context.AfterFunc(ctx, cancel)()
			for ; ok && yield(row, err); row, err, ok = next() {
			}
		}
	}, stop, nil
}

// RowError says why one row cannot be read. The import goes on.
type RowError struct {
	Name string // of the row in its source, if it has one; it may be personal data
	Err  error
}

// Error says why, without the name.
func (e *RowError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

// Options configures Run.
type Options struct {
	Defaults
	DryRun bool
	// Bad is called for each row that cannot be imported, with its number from 1 on and its
	// key, hashed if HashKeys is set; the zero Key if the row cannot be read.
	// Different is called for a row whose key has a record with another answer. Calls do
	// not overlap.
	Bad       func(row int64, k store.Key, err error)
	Different func(row int64, k store.Key)
	Progress  func(Stats) // called now and then
}

// Stats are the counts of an import.
type Stats struct {
	Read      int64 `json:"read"`
	Imported  int64 `json:"imported"`
	There     int64 `json:"already_there"` // the key has a record, with the same answer
	Different int64 `json:"different"`     // the key has a record with another answer, which stays
	Expired   int64 `json:"expired"`
	Bad       int64 `json:"bad"`
}

const (
	workers       = 16
	progressEvery = 1000 // rows
)

// Run imports all rows of a source. A key that has a record is left as it is, so that an
// import may be ended at any time and run again.
func Run(ctx context.Context, from Source, to store.Store, o *Options) (Stats, error) {
	receiver, ok := store.As[store.Receiver](to)
	if !ok {
		return Stats{}, errors.New("this store cannot receive records; it must implement store.Receiver")
	}
	run := &run{options: o, to: to, receiver: receiver, rows: make(chan numbered)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for row := range run.rows {
				if err := run.one(ctx, row); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := run.read(ctx, from)
	close(run.rows)
	all.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return run.stats(), err
}

type numbered struct {
	number int64
	row    Row
}

// run is one import.
type run struct {
	options  *Options
	to       store.Store
	receiver store.Receiver
	rows     chan numbered

	rowsRead, imported, there, different, expired, bad atomic.Int64

	mu sync.Mutex // of the calls of Options
}

func (r *run) stats() Stats {
	return Stats{r.rowsRead.Load(), r.imported.Load(), r.there.Load(), r.different.Load(), r.expired.Load(), r.bad.Load()}
}

func (r *run) read(ctx context.Context, from Source) error {
	for row, err := range from(ctx) {
		if _, ok := errors.AsType[*RowError](err); err != nil && !ok {
			return err
		}
		n := r.rowsRead.Add(1)
		if n%progressEvery == 0 && r.options.Progress != nil {
			r.options.Progress(r.stats())
		}
		if err != nil {
			r.refuse(n, store.Key{}, err)
			continue
		}
		select {
		case r.rows <- numbered{n, row}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) refuse(row int64, k store.Key, err error) {
	r.bad.Add(1)
	if r.options.Bad != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.options.Bad(row, k, err)
	}
}

// one imports a row. Its error ends the import.
func (r *run) one(ctx context.Context, row numbered) error {
	record, err := r.options.record(row.row, time.Now())
	switch {
	case errors.Is(err, errExpired):
		r.expired.Add(1)
		return nil
	case err != nil:
		r.refuse(row.number, record.Key.Hashed(r.options.HashKeys), err)
		return nil
	}
	switch f, err := r.to.Get(ctx, record.Key); {
	case err == nil && f.Record.Expired(f.Now):
		r.refuse(row.number, record.Key, errors.New("the key has a record that has expired; remove it by semel sweep --once, and import again"))
		return nil
	case err == nil:
		r.compare(row.number, &record, &f.Record)
		return nil
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("read the store: %w", err)
	case r.options.DryRun:
		r.imported.Add(1)
		return nil
	}
	f, err := r.receiver.Receive(ctx, record, nil)
	if errors.Is(err, store.ErrTooLarge) {
		record.Outcome = store.Outcome{Code: record.Outcome.Code, Gone: true}
		f, err = r.receiver.Receive(ctx, record, nil)
	}
	switch {
	case err != nil:
		return fmt.Errorf("row %d: write the record: %w", row.number, err)
	case !f.Won: // a call or another import was faster
		r.compare(row.number, &record, &f.Record)
	default:
		r.imported.Add(1)
	}
	return nil
}

// compare counts a row whose key has a record.
func (r *run) compare(row int64, want, there *store.Record) {
	if want.Outcome.Equal(there.Outcome) || want.Outcome.Gone && want.Outcome.Code == there.Outcome.Code {
		r.there.Add(1)
		return
	}
	r.different.Add(1)
	if r.options.Different != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.options.Different(row, want.Key)
	}
}
