package semel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// Policy is what happens to a call in doubt, when it is not known whether the
// effect happened: the lease was lost, the process died, the handler panicked or
// returned a plain error. Each record keeps its policy; the stricter of the
// record's and the call's applies.
type Policy = store.Policy

const (
	// Retry lets the next call run the handler again. One outcome is
	// recorded; the effect may be attempted more than once.
	Retry = store.Retry
	// Park keeps the call from running again until a reconciler or an operator
	// has decided what happened. The effect is attempted at most once.
	Park = store.Park
)

// Options configures a Guard. Nil and zero fields mean the defaults.
type Options struct {
	// OnDoubt is Retry by default.
	OnDoubt Policy
	// Reconcile finds out what became of a parked call. The next call with the
	// key asks it, and so does Guard.Reconcile. It runs under a lease of its own,
	// so that no two ask at the same time. x.DownstreamKey gives the keys that
	// the handler used, and x.StepDownstreamKey those that its steps used.
	// DidNotHappen must stay true, also if a frozen handler wakes up later. In
	// case of doubt return an error, or the zero Verdict: the call stays parked.
	// Only with Park. Nil: parked calls wait for an operator.
	Reconcile func(ctx context.Context, x *Execution) (Verdict, error)

	// Lease is how long a claim holds without a renewal: 30 s by default, at
	// least 10 ms. After a crash, duplicates get ErrInProgress for this long. A
	// running handler's lease is renewed each third of it. If that fails, the
	// handler's context ends when an eighth to a sixth of the lease is left.
	Lease time.Duration
	// Retention is how long an outcome is kept after the call has completed: 24 h
	// by default. It must exceed the time in which duplicates can arrive. Parked
	// calls are kept until they are resolved.
	Retention time.Duration
	// Reservation is how long Reserve keeps a call for its token. The default and
	// the maximum are Retention.
	Reservation time.Duration

	// MaxAttempts is how often a handler may start for one key. After that the
	// key fails for good (Retry) or stays parked (Park). Zero: no limit.
	MaxAttempts int
	// Backoff is the pause after failed attempt n (1, 2, …), at most Retention. Until
	// it is over, calls with the key fail with ErrInProgress. The next attempt may come
	// up to a Retention later; after that the attempts are forgotten. Nil: no pause. If
	// Backoff panics: 1 s, 2 s, 4 s and so on, at most 1 min.
	Backoff func(n int) time.Duration
	// MaxWaiters is how many calls of this Guard may wait for one key at the same
	// time: 1024 by default. One more fails with ErrInProgress.
	MaxWaiters int

	// MaxOutcome is the largest result to keep, in bytes of body and headers:
	// 1 MiB by default. If a result is larger, the first caller gets it, and
	// duplicates get ErrNotKept.
	MaxOutcome int
	// StoreTimeout is how long a call waits for one answer of the store, repeats
	// included: 5 s by default. Then it fails with ErrUnavailable. If the store has
	// granted the claim all the same, the Guard gives it back in the background.
	StoreTimeout time.Duration
	// SettleTimeout is how long the Guard tries to store the end of a call: 10 s
	// by default. The caller's cancellation does not stop it.
	SettleTimeout time.Duration

	// Codecs encode and decode results. The first encodes; all decode. JSON, by
	// the name "json", is always the last. Nil: only JSON.
	Codecs []Codec
	// Secrets key the hashes of payloads. The first hashes; all compare. Nil: the
	// hashes have no key. These are the hashes of the zero Secret, which every
	// process can compare. A process without the secret of a record fails its calls
	// with ErrUnverifiable, so a new secret takes three steps, each in every process:
	//
	//  1. Add the new secret as the second. If it is the only one, the zero Secret
	//     is the first.
	//  2. Make it the first. Leave the zero Secret out.
	//  3. Remove the old one after a Retention, when no call is parked under it.
	Secrets []Secret

	// Encryption encrypts results, failures and the texts of errors before they reach the
	// store, and decrypts them: see package store/encrypted. All Guards and Atomics of a
	// store need it, with the same keys. A result that cannot be decrypted is an error
	// with the reason store.ErrCorrupt, and the handler does not run. Nil: nothing is
	// encrypted.
	Encryption *encrypted.Cipher

	// HashKeys is a secret with which tenants and keys are hashed before they reach the
	// store, by store.Key.Hashed. Records, events, tokens and the Execution have the hashes.
	// All Guards and Atomics of a store need the same secret. It cannot be changed:
	// under another secret, or with none, all keys are new, and their handlers run again.
	// At least 32 random bytes. Nil: tenants and keys are stored as they are.
	HashKeys []byte

	// Rerun runs the handler again for completed calls, never two of them at the
	// same time, and leaves the kept outcome alone. If the outcome expires during a
	// rerun, the next call is new and runs beside it. Rerun is for reads, whose
	// answer must be fresh. Not with Park.
	Rerun bool
	// UnprotectedOnOutage runs the handler without a record if the store does not answer the
	// claim within StoreTimeout (or Lease/3, if that is shorter), or refuses all claims, as a
	// server that can only be read does. In both cases the Guard then asks for the record, for at most a second, and
	// the call is ErrUnavailable if somebody else's is there and has not expired. If the
	// store refuses connections, the Guard gives up after four requests, which takes about 0.2 s,
	// and does not wait for StoreTimeout. Each such run has an EventUnprotected. During an outage duplicates take
	// effect again, even while the first call runs, and even if another Guard has parked the
	// key. A busy store (store.ErrBusy) has answered: the call is ErrUnavailable and does not
	// run. Not with Park.
	UnprotectedOnOutage bool

	// Holder tells operators which process holds a claim: host name and process
	// ID by default.
	Holder string
	// TxHolder returns the holder of a claim in a transaction, such as one of a store's
	// Atomic. It gets the context of the call, or of its batch, and Holder. It must not
	// block. Nil: Holder. See semelotel.Telemetry.TxHolder, which adds the trace.
	TxHolder func(ctx context.Context, holder string) string
	// Observe gets each event, on the goroutine where it happens. It must not
	// block. A panic of Observe is logged and has no effect. Nil: only the events that need
	// an operator go to slog.Default(), as LogEvents writes them: a call that is parked, has used
	// up its attempts, ran without a record, or whose outcome is not stored, and a record that
	// cannot be read. A transaction that is not committed is not logged: its caller has the
	// error. A function that does nothing turns the log off.
	Observe func(ctx context.Context, e Event)
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.Lease = cmp.Or(d.Lease, 30*time.Second)
	d.Retention = cmp.Or(d.Retention, 24*time.Hour)
	d.Reservation = cmp.Or(d.Reservation, d.Retention)
	d.StoreTimeout = cmp.Or(d.StoreTimeout, 5*time.Second)
	d.SettleTimeout = cmp.Or(d.SettleTimeout, 10*time.Second)
	d.MaxWaiters = cmp.Or(d.MaxWaiters, 1024)
	d.MaxOutcome = cmp.Or(d.MaxOutcome, 1<<20)
	if d.Backoff != nil {
		d.Backoff = callback.Backoff("semel", d.Backoff)
	}
	d.HashKeys = slices.Clone(d.HashKeys) // nil stays nil
	if !slices.ContainsFunc(d.Codecs, func(c Codec) bool { return c != nil && c.Name() == jsonCodec{}.Name() }) {
		d.Codecs = append(slices.Clone(d.Codecs), jsonCodec{})
	}
	if d.Holder == "" {
		host, _ := os.Hostname() // for people only; without it the process ID is enough
		d.Holder = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return d
}

const (
	minLease    = 10 * time.Millisecond
	maxDuration = 100 * 365 * 24 * time.Hour

	minHashKeys = 32 // bytes
)

// validate reports everything that is wrong. The defaults must be set.
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
		{"StoreTimeout", o.StoreTimeout, time.Millisecond},
		{"SettleTimeout", o.SettleTimeout, time.Millisecond},
	} {
		if d.value < d.least || d.value > maxDuration {
			bad("%s: is %v; it must be from %v to %v", d.name, d.value, d.least, maxDuration)
		}
	}
	if o.Encryption != nil && o.Encryption.Keys == nil {
		bad("Encryption.Keys: is nil; use encrypted.ReadKeyFile, or keys of your own")
	}
	if n := len(o.HashKeys); o.HashKeys != nil && n < minHashKeys {
		bad("HashKeys: has %d bytes; at least %d random ones are needed (openssl rand -base64 %d)", n, minHashKeys, minHashKeys)
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
		case c.Name() == "" || c.Name() == protocol.FailureCodec || c.Name() == encrypted.Codec || names[c.Name()]:
			bad("Codecs[%d]: the name %q is empty, reserved or used twice", i, c.Name())
		default:
			names[c.Name()] = true
		}
	}
	ids := map[string]bool{}
	for i, s := range o.Secrets {
		if i == 0 && s.ID == "" && s.Key == nil {
			continue // hashes without a secret
		}
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
