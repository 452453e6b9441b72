package semel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/semel-go/semel/store"
)

// Policy is what happens when nobody knows whether an effect happened: the
// lease was lost, the process died, the handler panicked or returned a plain
// error. It is kept in each record; the stricter of the record's and the
// call's wins.
type Policy = store.Policy

const (
	// Retry lets the next call run the handler again. One outcome is
	// recorded; the effect may be attempted more than once.
	Retry = store.Retry
	// Park lets nothing run it again until a reconciler or an operator has
	// said what happened. The effect is attempted at most once.
	Park = store.Park
)

// Options configures a Guard. Nil and zero fields mean the defaults.
type Options struct {
	// OnDoubt is Retry by default.
	OnDoubt Policy
	// Reconcile finds out what became of a parked call. It is asked by the
	// next call with the key, and by Guard.Reconcile. Nil: parked calls wait
	// for an operator.
	Reconcile ReconcileFunc

	// Lease is how long a claim holds without a renewal: 30 s by default, at
	// least 10 ms. It is renewed every third, and the handler's context ends
	// an eighth to a sixth of it before its end if that fails.
	Lease time.Duration
	// Retention is how long an outcome is kept, from completion: 24 h by
	// default. It must exceed the time in which duplicates can come. Parked
	// calls are kept until resolved.
	Retention time.Duration
	// Reservation is how long Reserve keeps a call for its token: as long as
	// Retention by default, and no longer.
	Reservation time.Duration

	// MaxAttempts is how often a handler may start for one key: after that
	// the key fails for good (Retry) or stays unknown (Park). Zero: no limit.
	MaxAttempts int
	// Backoff is the pause after the n-th failed attempt (n ≥ 1); until it is
	// over duplicates are told ErrInProgress. Nil: none.
	Backoff func(n int) time.Duration
	// MaxWaiters is how many calls of this Guard may wait for one key at a
	// time: 1024 by default. One more is told ErrInProgress.
	MaxWaiters int

	// MaxOutcome is the largest result to keep, in bytes of body and headers:
	// 1 MiB by default. A larger one leaves a tombstone: the first caller
	// gets it, the duplicates ErrNotKept.
	MaxOutcome int
	// SettleTimeout is how long the end of a call is tried to be stored: 10 s
	// by default. The caller's cancellation does not reach it.
	SettleTimeout time.Duration

	// Codecs write and read results: the first writes, all read. Nil: JSON.
	Codecs []Codec
	// Secrets key the hashes of payloads: the first writes, all compare. To
	// rotate, add a new one second in every process, then make it the first,
	// and keep the old one for a retention, and while calls are parked under
	// it. Who lacks a secret answers ErrUnverifiable. Nil: unkeyed.
	Secrets []Secret

	// Rerun makes completed calls execute again, never two at a time, and
	// leaves the kept outcome alone: for reads, whose answer must be fresh.
	Rerun bool
	// UnprotectedOnOutage runs the handler without a record when the store
	// does not answer, or not within a third of Lease, each time with an
	// EventUnprotected. Duplicates then take effect again, also beside a run
	// that is in flight, and of keys that another Guard has parked. Refused
	// with Park.
	UnprotectedOnOutage bool

	// Holder tells operators who holds a claim: host name and process id by
	// default.
	Holder string
	// Observe is told of each event, on the goroutine where it happens. It
	// must not block. Nil: nobody is.
	Observe func(ctx context.Context, e Event)
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.Lease, 30*time.Second)
	setDefault(&d.Retention, 24*time.Hour)
	setDefault(&d.Reservation, d.Retention)
	setDefault(&d.SettleTimeout, 10*time.Second)
	setDefault(&d.MaxWaiters, 1024)
	setDefault(&d.MaxOutcome, 1<<20)
	if len(d.Codecs) == 0 {
		d.Codecs = []Codec{JSONCodec()}
	}
	if d.Holder == "" {
		host, _ := os.Hostname() // for people only: without it the process id remains
		d.Holder = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return d
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

const (
	minLease    = 10 * time.Millisecond
	maxDuration = 100 * 365 * 24 * time.Hour
)

// validate reports all that is wrong, of options with their defaults set.
func (o *Options) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.OnDoubt > Park {
		bad("OnDoubt: is %d; it must be Retry or Park", o.OnDoubt)
	}
	if o.Reconcile != nil && o.OnDoubt != Park {
		bad("Reconcile: is set, but OnDoubt is %v; only Park asks it", o.OnDoubt)
	}
	if o.Rerun && o.OnDoubt == Park {
		bad("Rerun: is set with OnDoubt Park; it is for reads, which can be repeated")
	}
	if o.UnprotectedOnOutage && o.OnDoubt == Park {
		bad("UnprotectedOnOutage: is set with OnDoubt Park, which promises at most one effect")
	}
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"Lease", o.Lease, minLease},
		{"Retention", o.Retention, time.Millisecond},
		{"Reservation", o.Reservation, time.Millisecond},
		{"SettleTimeout", o.SettleTimeout, time.Millisecond},
	} {
		if d.value < d.least || d.value > maxDuration {
			bad("%s: is %v; it must be from %v to %v", d.name, d.value, d.least, maxDuration)
		}
	}
	if o.Reservation > o.Retention {
		bad("Reservation: is %v; it must not exceed Retention, %v, for which a failed attempt is kept", o.Reservation, o.Retention)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"MaxAttempts", o.MaxAttempts}, {"MaxWaiters", o.MaxWaiters}, {"MaxOutcome", o.MaxOutcome}} {
		if n.value < 0 {
			bad("%s: is %d; it must not be negative", n.name, n.value)
		}
	}
	names := map[string]bool{}
	for i, c := range o.Codecs {
		switch {
		case c == nil:
			bad("Codecs[%d]: is nil", i)
		case c.Name() == "" || c.Name() == failureCodec || names[c.Name()]:
			bad("Codecs[%d]: the name %q is empty, reserved or used twice", i, c.Name())
		default:
			names[c.Name()] = true
		}
	}
	ids := map[string]bool{}
	for i, s := range o.Secrets {
		if s.ID == "" || len(s.ID) > 64 || ids[s.ID] {
			bad("Secrets[%d].ID: must be unique, of 1 to 64 bytes", i)
		}
		if len(s.Key) < 16 {
			bad("Secrets[%d].Key: has %d bytes; at least 16 are needed", i, len(s.Key))
		}
		ids[s.ID] = true
	}
	return errors.Join(errs...)
}
