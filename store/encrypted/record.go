package encrypted

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// proposal encrypts a proposal. If there is no key, a claim fails before it is sent,
// because its result could not be stored.
func (c *Cipher) proposal(ctx context.Context, p *store.Proposal) (err error) {
	if p.State == store.Started || p.State == store.Processing {
		if _, _, err := c.current(ctx, p.Key.Tenant); err != nil {
			return err
		}
	}
	p.Error = c.sealText(ctx, p.Key, p.Error)
	p.Outcome, err = c.sealOutcome(ctx, outcomePlaceOf(p.Key, p.Owner, p.State), p.Outcome)
	return err
}

// settlement encrypts the settlement of a claim.
func (c *Cipher) settlement(ctx context.Context, l store.Lease, s *store.Settlement) (err error) {
	s.Error = c.sealText(ctx, l.Key, s.Error)
	s.Outcome, err = c.sealOutcome(ctx, outcomePlaceOf(l.Key, l.Owner, s.State), s.Outcome)
	return err
}

// found decrypts the record that a store has answered with. If it cannot, it returns the
// record without its outcome, which tells a Guard that there is one.
func (c *Cipher) found(ctx context.Context, f store.Found, err error) (store.Found, error) {
	if err != nil {
		return f, err
	}
	r := &f.Record
	r.LastError = c.openText(ctx, r.Key, r.LastError)
	r.Outcome, err = c.openOutcome(ctx, r)
	return f, err
}

// sealOutcome encrypts an outcome. The zero outcome says only that the work is done. It
// stays as it is, because pgstore inserts such records before it runs their handlers.
func (c *Cipher) sealOutcome(ctx context.Context, p place, o store.Outcome) (store.Outcome, error) {
	if o.Equal(store.Outcome{}) {
		return o, nil
	}
	return c.sealStep(ctx, p, &store.Step{Outcome: o})
}

// openOutcome decrypts the outcome of a record. A store, or a copy to another one, may have
// put a tombstone in the place of a ciphertext that it cannot keep. It says that the work is
// done and with which code, and nothing else. A failure must have its ciphertext: otherwise
// a writer of the database could make a failure of a result.
func (c *Cipher) openOutcome(ctx context.Context, r *store.Record) (store.Outcome, error) {
	o := r.Outcome
	switch {
	case o.Equal(store.Outcome{}):
		return o, nil
	case r.State == store.Completed && o.Equal(store.Outcome{Code: o.Code, Codec: Codec, Gone: true}):
		return store.Outcome{Code: o.Code, Gone: true}, nil
	}
	return c.openStep(ctx, outcomePlaceOf(r.Key, r.Owner, r.State), &store.Step{Outcome: o})
}

// sealStep returns the outcome with which a store keeps a step. All that the step has is
// in the ciphertext; its code and whether it is gone are in the clear, too.
func (c *Cipher) sealStep(ctx context.Context, p place, s *store.Step) (store.Outcome, error) {
	b, err := c.seal(ctx, p, store.EncodeStep(s))
	if err != nil {
		return store.Outcome{}, err
	}
	return store.Outcome{Code: s.Outcome.Code, Gone: s.Outcome.Gone, Codec: Codec, Body: b}, nil
}

// openStep returns the outcome of a step as it was before sealStep. It refuses a step
// that says something else in the clear than in its ciphertext.
func (c *Cipher) openStep(ctx context.Context, p place, s *store.Step) (store.Outcome, error) {
	if s.Outcome.Codec != Codec {
		if c.RequireEncrypted {
			return store.Outcome{}, refused(p, "it is not encrypted, and RequireEncrypted (--require-encrypted) is set; it was written without encryption, or somebody else has written it")
		}
		return s.Outcome, nil
	}
	b, err := c.open(ctx, p, s.Outcome.Body)
	if err != nil {
		return store.Outcome{}, err
	}
	sealed, err := store.DecodeStep(s.Name, time.Time{}, b)
	if err != nil {
		return store.Outcome{}, refused(p, "%w", err)
	}
	if sealed.Failed != s.Failed || sealed.Attempt != s.Attempt || sealed.Fingerprint != s.Fingerprint ||
		sealed.Outcome.Code != s.Outcome.Code || sealed.Outcome.Gone != s.Outcome.Gone || len(s.Outcome.Header) > 0 {
		return store.Outcome{}, refused(p, "what is stored in the clear beside it was changed")
	}
	return sealed.Outcome, nil
}

// textPrefix marks the text of an error that is encrypted; base64 follows.
const textPrefix = Codec + ":"

// sealText encrypts the text of an error. It does not fail, so that a claim can be given
// back while there is no key.
func (c *Cipher) sealText(ctx context.Context, k store.Key, text string) string {
	if text == "" {
		return ""
	}
	b, err := c.seal(ctx, place{kind: textPlace, key: k}, []byte(text))
	if err != nil {
		return "(the error was not kept, because there was no key to encrypt it)"
	}
	return textPrefix + base64.RawStdEncoding.EncodeToString(b)
}

// openText decrypts the text of an error, or says why it cannot.
func (c *Cipher) openText(ctx context.Context, k store.Key, text string) string {
	encoded, sealed := strings.CutPrefix(text, textPrefix)
	switch {
	case !sealed && text != "" && c.RequireEncrypted:
		return "(the error is not shown: it is not encrypted, and RequireEncrypted (--require-encrypted) is set)"
	case !sealed:
		return text
	}
	b, err := base64.RawStdEncoding.DecodeString(encoded)
	if err == nil {
		b, err = c.open(ctx, place{kind: textPlace, key: k}, b)
	}
	if err != nil {
		return "(the error cannot be shown: " + err.Error() + ")"
	}
	return string(b)
}
