package encrypted

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/semel-go/semel/store"
)

// Store returns st with encryption, for programs that use a store without a Guard. It
// keeps the optional interfaces of st. A store that c encrypts already is returned as it
// is, so that a Guard may have the option, too. A nil Cipher returns st.
//
// Put package nearcache below it: a cache above it would hold results in the clear.
func (c *Cipher) Store(st store.Store) store.Store {
	if c == nil {
		return st
	}
	if e, ok := store.As[*encryptedStore](st); ok && e.cipher == c {
		return st
	}
	s := &encryptedStore{st, c, st}
	if inner, ok := store.As[store.Lister](st); ok {
		s.next = lister{s, s.next, inner}
	}
	if inner, ok := store.As[store.Journal](st); ok {
		s.next = journaled{s, s.next, journal{c, inner}}
	}
	if inner, ok := store.As[store.Receiver](st); ok {
		s.next = receiver{s, s.next, inner}
	}
	return s
}

// encryptedStore is a store whose records are encrypted.
type encryptedStore struct {
	store.Store
	cipher *Cipher
	next   store.Store // a chain of the optional interfaces, for store.As
}

// Unwrap lets store.As find the optional interfaces.
func (s *encryptedStore) Unwrap() store.Store { return s.next }

// Claim implements store.Store. If there is no key to encrypt with, it sends no claim, but it
// still returns the record of another owner: a duplicate gets its result, and a Guard learns
// that a run without a record would repeat an effect.
func (s *encryptedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if noKey := s.cipher.proposal(ctx, &p); noKey != nil {
		f, err := s.Get(ctx, p.Key)
		if errors.Is(err, store.ErrCorrupt) || f.Record.Key == p.Key && f.Record.Owner != p.Owner {
			return f, err
		}
		return store.Found{}, noKey
	}
	f, err := s.Store.Claim(ctx, p)
	return s.cipher.found(ctx, f, err)
}

// Swap implements store.Store.
func (s *encryptedStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := s.cipher.proposal(ctx, &p); err != nil {
		return store.Found{}, err
	}
	f, err := s.Store.Swap(ctx, seen, p)
	return s.cipher.found(ctx, f, err)
}

// Settle implements store.Store. A settlement that is sent again has another ciphertext,
// so the store takes it for another one. If it refuses it, the record is read.
func (s *encryptedStore) Settle(ctx context.Context, l store.Lease, plain store.Settlement) error {
	sealed := plain
	if err := s.cipher.settlement(ctx, l, &sealed); err != nil {
		return err
	}
	lost := s.Store.Settle(ctx, l, sealed)
	if !errors.Is(lost, store.ErrLeaseLost) || !plain.State.Terminal() {
		return lost
	}
	f, err := s.Get(ctx, l.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return lost
	case err != nil:
		return err
	case f.Record.Lease() == l && plain.Done(&f.Record):
		return nil
	}
	return lost
}

// Get implements store.Store.
func (s *encryptedStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.Store.Get(ctx, k)
	return s.cipher.found(ctx, f, err)
}

// Sweep implements store.Store. A lapsed record has no outcome.
func (s *encryptedStore) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	res, err := s.Store.Sweep(ctx, from, limit)
	for i := range res.Lapsed {
		r := &res.Lapsed[i]
		r.LastError = s.cipher.openText(ctx, r.Key, r.LastError)
	}
	return res, err
}

// lister is an encryptedStore that lists records.
type lister struct {
	*encryptedStore
	rest  store.Store
	inner store.Lister
}

func (l lister) Unwrap() store.Store { return l.rest }

// List implements store.Lister. For a record that cannot be decrypted it yields an error
// that wraps store.ErrCorrupt, and goes on.
func (l lister) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for found, err := range l.inner.List(ctx, f) {
			if !yield(l.cipher.found(ctx, found, err)) {
				return
			}
		}
	}
}

// receiver is an encryptedStore that can receive records.
type receiver struct {
	*encryptedStore
	rest  store.Store
	inner store.Receiver
}

func (r receiver) Unwrap() store.Store { return r.rest }

// Receive implements store.Receiver. It encrypts the record and its steps. If one of them is
// encrypted already, it stores nothing, and the error wraps store.ErrCorrupt.
func (r receiver) Receive(ctx context.Context, record store.Record, steps []store.Step) (f store.Found, err error) {
	c := r.cipher
	if err := checkClear(&record, steps); err != nil {
		return f, err
	}
	record.LastError = c.sealText(ctx, record.Key, record.LastError)
	if record.Outcome, err = c.sealOutcome(ctx, outcomePlaceOf(record.Key, record.Owner, record.State), record.Outcome); err != nil {
		return f, err
	}
	sealed := make([]store.Step, len(steps))
	for i, step := range steps {
		sealed[i] = step
		if sealed[i].Outcome, err = c.sealStep(ctx, place{stepPlace, record.Key, step.Name}, &step); err != nil {
			return f, err
		}
	}
	f, err = r.inner.Receive(ctx, record, sealed)
	return c.found(ctx, f, err)
}

// checkClear returns an error if a record or a step is encrypted. It comes from a store whose
// keys were not given, and a second encryption would hide that it cannot be read.
func checkClear(r *store.Record, steps []store.Step) error {
	const why = "it is encrypted already; give the keys of the store that it comes from: --from-encryption-keys, or in Go that store's Cipher.Store"
	switch {
	case r.Outcome.Codec == Codec:
		return refused(outcomePlaceOf(r.Key, r.Owner, r.State), why)
	case strings.HasPrefix(r.LastError, textPrefix):
		return refused(place{kind: textPlace, key: r.Key}, why)
	}
	for i := range steps {
		if steps[i].Outcome.Codec == Codec {
			return refused(place{stepPlace, r.Key, steps[i].Name}, why)
		}
	}
	return nil
}

// journaled is an encryptedStore that keeps steps.
type journaled struct {
	*encryptedStore
	rest store.Store
	journal
}

func (j journaled) Unwrap() store.Store { return j.rest }

// journal keeps encrypted steps, in a store or in a transaction.
type journal struct {
	stepCipher *Cipher
	inner      store.Journal
}

// RecordStep implements store.Journal. A step that is sent again has another ciphertext,
// so the store takes it for another one. If it refuses it, the steps are read.
func (j journal) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	plain := s
	var err error
	if s.Outcome, err = j.stepCipher.sealStep(ctx, place{stepPlace, l.Key, s.Name}, &plain); err != nil {
		return err
	}
	changed := j.inner.RecordStep(ctx, l, s)
	if !errors.Is(changed, store.ErrChanged) {
		return changed
	}
	steps, err := j.Steps(ctx, l)
	if err != nil {
		return err
	}
	for i := range steps {
		if steps[i].Equal(&plain) {
			return nil
		}
	}
	return changed
}

// Steps implements store.Journal. If one step cannot be decrypted, it returns an error
// and no step, because the call would repeat it.
func (j journal) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	steps, err := j.inner.Steps(ctx, l)
	if err != nil {
		return nil, err
	}
	opened := make([]store.Step, len(steps))
	for i := range steps {
		opened[i] = steps[i]
		if opened[i].Outcome, err = j.stepCipher.openStep(ctx, place{stepPlace, l.Key, steps[i].Name}, &steps[i]); err != nil {
			return nil, err
		}
	}
	return opened, nil
}
