package driver

import (
	"context"
	"errors"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// RedriveHeader is the header of a copy that goes back from the dead letters to be
// run again. Letter removes it.
const RedriveHeader = "semel-redrive"

// Reopen reopens the failure that a redriven message names: m has the headers
// RedriveHeader and LetterFence, and the record of call failed with that fencing token.
// So a message that is delivered or sent again reopens the failure once. In all other
// cases, and if g is nil, Reopen does nothing. If the error is semel.ErrUnavailable, try the
// message again later. If it is semel.ErrInvalid, Guard.Reopen refuses the call because of its
// steps, so put the message into the dead letters again: Decide does both.
//
// Call it before each try of a message. A Consumer does so.
func Reopen(ctx context.Context, g *semel.Guard, call semel.Call, m *Message) error {
	why, _ := m.Header(RedriveHeader)
	if g == nil || why == "" {
		return nil
	}
	text, _ := m.Header(LetterFence)
	fence, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // the copy names no failure
	}
	r, err := g.Get(ctx, call)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, semel.ErrInvalid), errors.Is(err, store.ErrCorrupt):
		return nil // the run finds the same, and its result decides about the message
	case err != nil:
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: call.Operation, Cause: err}
	case r.State != store.Failed || r.Fence != fence:
		return nil
	}
	if err := g.Reopen(ctx, r, "redriven: "+why); err != nil && !errors.Is(err, store.ErrChanged) {
		return err
	}
	return nil
}

// FailureFence returns the Fence of a Disposition. If d is about a failure of an earlier
// run, g finds the fence in the record of call, so that its dead letter can be redriven.
// Zero: there is no failure, g is nil, or the store does not answer.
func FailureFence(ctx context.Context, g *semel.Guard, call semel.Call, d Disposition) uint64 {
	failed := d.Reason == ReasonFailed || d.Reason == ReasonExhausted || d.Reason == ReasonDeliveries
	if d.Fence > 0 || d.Action != DeadLetter || !failed || g == nil {
		return d.Fence
	}
	r, err := g.Get(ctx, call)
	if err != nil || r.State != store.Failed { // without a fence only an operator can reopen it
		return 0
	}
	return r.Fence
}
