package nearcache

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// MaxBytes bounds the memory of what is kept: 64 MiB by default. A record
	// that takes more than a quarter of a part of it is not kept; there are up to
	// 32 parts, each of at least 256 KiB.
	MaxBytes int64
	// MaxAge is how long a record is handed out without asking the store: one
	// minute by default, and ten with a Front. It bounds how long an operator's
	// change, or a loss of data in the store, goes unseen.
	MaxAge time.Duration
	// Skew is how much the store's clocks may differ among themselves and
	// from one answer to the next: 1 s by default. A record is over here by so
	// much earlier. A nanosecond is as good as none.
	Skew time.Duration
	// Front is a fast store that processes share, such as Redis in front of
	// PostgreSQL; see the package's documentation. It must honour its contexts.
	// Outcomes of this process reach it if MaxBytes has room for the claims
	// in flight.
	// Who has opened it closes it. Nil: none.
	Front store.Store
	// FrontTimeout is how long a call waits for the front: 50 ms by default.
	// Then it goes on without.
	FrontTimeout time.Duration
	// FrontRest is how long the front is left alone after it failed: 1 s by
	// default.
	FrontRest time.Duration
	// Now is this process's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	if d.MaxBytes == 0 {
		d.MaxBytes = 64 << 20
	}
	if d.MaxAge == 0 {
		d.MaxAge = time.Minute
		if d.Front != nil {
			d.MaxAge = 10 * time.Minute
		}
	}
	if d.FrontTimeout == 0 {
		d.FrontTimeout = 50 * time.Millisecond
	}
	if d.FrontRest == 0 {
		d.FrontRest = time.Second
	}
	if d.Skew == 0 {
		d.Skew = time.Second
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	var errs []error
	if d.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("nearcache: MaxBytes is %d; it must not be negative", d.MaxBytes))
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"MaxAge", d.MaxAge}, {"Skew", d.Skew}, {"FrontTimeout", d.FrontTimeout}, {"FrontRest", d.FrontRest}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("nearcache: %s is %v; it must not be negative", f.name, f.value))
		}
	}
	d.MaxAge, d.FrontRest = min(d.MaxAge, forever), min(d.FrontRest, forever)
	return d, errors.Join(errs...)
}

// forever is so long that nothing here lives to see it, and can be added to.
const forever = 100 * 365 * 24 * time.Hour

// New puts a cache in front of a store. It does no I/O, and reports all that
// is wrong with o. There is nothing to close.
func New(st store.Store, o *Options) (*Store, error) {
	if st == nil {
		return nil, errors.New("nearcache: the store is nil; pass the one to put the cache in front of")
	}
	d, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{st: st, maxAge: d.MaxAge, skew: d.Skew, now: d.Now, start: d.Now()}
	if d.Front != nil {
		s.front = &front{st: d.Front, timeout: d.FrontTimeout, rest: d.FrontRest}
	}
	s.init(d.MaxBytes)
	return s, nil
}
