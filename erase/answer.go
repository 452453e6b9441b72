package erase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// erasedHolder is the Holder of a record whose answer was erased.
const erasedHolder = "the answer was erased"

// erase erases a record, or its answer. With CountOnly it only checks that it can.
func (e *eraser) erase(ctx context.Context, f *store.Found) error {
	switch {
	case e.options.AnswersOnly && !f.Record.Expired(f.Now):
		return e.eraseAnswer(ctx, f)
	case e.options.CountOnly:
		return nil
	}
	var refused error
	err := e.change(ctx, func(ctx context.Context) error {
		err := e.inner.Erase(ctx, f.Record.Seen())
		switch {
		case errors.Is(err, store.ErrNotFound): // sent twice, or a sweep was faster
			return nil
		case store.Affects(err) == store.ExtentCall: // it is an answer, and not asked for again
			refused = err
			return nil
		}
		return err
	})
	return errors.Join(err, refused)
}

// eraseAnswer replaces a record by one that says only that the call is done, or that it
// has failed. If there are steps, it begins a new life of the key, so that they go, too;
// tokens are of the old life.
func (e *eraser) eraseAnswer(ctx context.Context, f *store.Found) error {
	r := &f.Record
	outcome, err := withoutAnswer(r)
	if err != nil {
		return store.WithExtent(err, store.ExtentCall)
	}
	if e.options.CountOnly {
		return nil
	}
	hasSteps, err := e.hasSteps(ctx, r)
	if err != nil {
		return err
	}
	p := store.Proposal{
		Key: r.Key, State: r.State, Policy: r.Policy, Owner: protocol.NewOwner(), Holder: erasedHolder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: r.Expires.Sub(f.Now), Outcome: outcome, Restart: hasSteps,
	}
	var after store.Found
	err = e.change(ctx, func(ctx context.Context) (err error) {
		after, err = e.store.Swap(ctx, r.Seen(), p)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound): // a sweep was faster
		return nil
	case err == nil && !after.Won:
		return store.ErrChanged
	}
	return err
}

// withoutAnswer is what is left of a record's outcome.
func withoutAnswer(r *store.Record) (store.Outcome, error) {
	o := &r.Outcome
	if o.Codec == encrypted.Codec {
		return store.Outcome{}, errors.New("its answer is encrypted, so that what replaces it must be, too; give the keys")
	}
	if r.State == store.Completed || o.Gone {
		return store.Outcome{Code: o.Code, Codec: o.Codec, Gone: true}, nil
	}
	var failure protocol.Failure
	if err := json.Unmarshal(o.Body, &failure); err != nil || o.Codec != protocol.FailureCodec {
		return store.Outcome{}, fmt.Errorf("its failure has the codec %q and cannot be read: %w", o.Codec, errors.Join(store.ErrCorrupt, err))
	}
	return protocol.FailureOutcome(protocol.Failure{Code: failure.Code, Message: "the message was erased"})
}
