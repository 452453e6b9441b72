package nearcache

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// MaxBytes bounds the memory of the cache: 64 MiB by default. It is divided
	// into up to 32 shards of at least 256 KiB. A record that needs more than a
	// quarter of a shard is not cached.
	MaxBytes int64
	// MaxAge is how long a record is used without asking the store: one minute
	// by default, and ten with a Front. It bounds how long an operator's change,
	// or a loss of data in the store, stays unnoticed.
	MaxAge time.Duration
	// Skew is how much the store's clocks may differ from each other, and jump
	// from one answer to the next: 1 s by default. The cache lets a record
	// expire earlier by that much. For none, set 1 ns.
	Skew time.Duration
	// Front is a fast store that processes share, such as Redis in front of
	// PostgreSQL; see the package's documentation. It must return when its
	// contexts end. MaxBytes must have room for the claims in flight, because
	// otherwise their outcomes are not written to the front. The cache does not
	// close it. Nil: none.
	Front store.Store
	// FrontTimeout is how long a call waits for the front: 50 ms by default.
	// Then it continues without it.
	FrontTimeout time.Duration
	// FrontCooldown is how long the front is not used after it failed: 1 s by
	// default.
	FrontCooldown time.Duration
	// Now is this process's clock. Nil: time.Now. For tests.
	Now func() time.Time
}

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.MaxBytes = cmp.Or(d.MaxBytes, 64<<20)
	if d.MaxAge == 0 {
		d.MaxAge = time.Minute
		if d.Front != nil {
			d.MaxAge = 10 * time.Minute
		}
	}
	d.FrontTimeout = cmp.Or(d.FrontTimeout, 50*time.Millisecond)
	d.FrontCooldown = cmp.Or(d.FrontCooldown, time.Second)
	d.Skew = cmp.Or(d.Skew, time.Second)
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
	}{{"MaxAge", d.MaxAge}, {"Skew", d.Skew}, {"FrontTimeout", d.FrontTimeout}, {"FrontCooldown", d.FrontCooldown}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("nearcache: %s is %v; it must not be negative", f.name, f.value))
		}
	}
	d.MaxAge, d.FrontCooldown = min(d.MaxAge, forever), min(d.FrontCooldown, forever)
	return d, errors.Join(errs...)
}

// forever is the longest duration that is used, so that sums do not overflow.
const forever = 100 * 365 * 24 * time.Hour

// New puts a cache in front of a store. It does no I/O, and its error names every
// invalid option. There is nothing to close.
func New(st store.Store, o *Options) (*Store, error) {
	if st == nil {
		return nil, errors.New("nearcache: the store is nil; pass the store to cache")
	}
	d, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{st: st, maxAge: d.MaxAge, skew: d.Skew, now: d.Now, start: d.Now()}
	if d.Front != nil {
		s.front = &front{st: d.Front, timeout: d.FrontTimeout, cooldown: d.FrontCooldown}
	}
	s.init(d.MaxBytes)
	return s, nil
}
