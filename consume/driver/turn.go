package driver

import (
	"context"
	"errors"
)

// Turn is an optional interface of the Cause of a *semel.Error with the reason
// semel.ErrInProgress. It says that the Runner takes the message later, for example because
// the message's tenant has as many messages running as it may have. A Consumer keeps the
// message without one of the places of Options.Concurrency, and tries it again when its turn
// has come. Such a try is no attempt. The methods must not block.
type Turn interface {
	error
	// Ready returns a channel that is closed when the Consumer is to try the message again.
	// That try has the Turn in its context: see TurnOf.
	Ready() <-chan struct{}
	// Leave gives the turn up. The Consumer calls it after the try, and if there is none,
	// because the message goes back to the broker or Serve has ended. It may be called
	// several times.
	Leave()
}

type turnKey struct{}

// WithTurn returns the context of the try of a message whose turn has come.
func WithTurn(ctx context.Context, t Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf returns the Turn for which the message has waited, or nil.
func TurnOf(ctx context.Context) Turn {
	t, _ := ctx.Value(turnKey{}).(Turn)
	return t
}

// Turn returns the Turn for which the message waits, or nil.
func (d *Disposition) Turn() Turn {
	if d.Reason != ReasonTurn {
		return nil
	}
	t, _ := errors.AsType[Turn](d.Err)
	return t
}
