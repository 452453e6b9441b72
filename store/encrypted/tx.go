package encrypted

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Tx returns tx with encryption. Package semel calls it for the transactions of an
// Atomic. If tx is a store.Journal, so is the result. A nil Cipher returns tx.
func (c *Cipher) Tx(tx store.Tx) store.Tx {
	if c == nil {
		return tx
	}
	e := &encryptedTx{Tx: tx, cipher: c}
	if inner, ok := tx.(store.Journal); ok {
		return journaledTx{e, journal{c, inner}}
	}
	return e
}

// encryptedTx is a transaction whose records are encrypted.
type encryptedTx struct {
	store.Tx
	cipher *Cipher

	// The last settlement, as it was given and as it was sent: if it is sent again, it
	// must have the same ciphertext.
	lease         store.Lease
	plain, sealed store.Settlement
}

type journaledTx struct {
	*encryptedTx
	journal
}

// RecordStep implements store.Journal. In a transaction no step is sent again, so that one
// of the same name is another's.
func (t journaledTx) RecordStep(ctx context.Context, l store.Lease, s store.Step) (err error) {
	if s.Outcome, err = t.cipher.sealStep(ctx, place{stepPlace, l.Key, s.Name}, &s); err != nil {
		return err
	}
	return t.inner.RecordStep(ctx, l, s)
}

// Claim implements store.Tx.
func (t *encryptedTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := t.cipher.proposal(ctx, &p); err != nil {
		return store.Found{}, err
	}
	f, err := t.Tx.Claim(ctx, p)
	return t.cipher.found(ctx, f, err)
}

// Swap implements store.Tx.
func (t *encryptedTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := t.cipher.proposal(ctx, &p); err != nil {
		return store.Found{}, err
	}
	f, err := t.Tx.Swap(ctx, seen, p)
	return t.cipher.found(ctx, f, err)
}

// Settle implements store.Tx.
func (t *encryptedTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if t.lease != l || t.plain.State != s.State || t.plain.Error != s.Error || !t.plain.Outcome.Equal(s.Outcome) {
		sealed := s
		if err := t.cipher.settlement(ctx, l, &sealed); err != nil {
			return err
		}
		t.lease, t.plain, t.sealed = l, s, sealed
	}
	s.Outcome, s.Error = t.sealed.Outcome, t.sealed.Error
	return t.Tx.Settle(ctx, l, s)
}
