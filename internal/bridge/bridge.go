// Package bridge gives packages driver, saga and outbox access to unexported parts of
// package semel. Package semel sets the variables when it is initialised; the packages
// call them and assert the results to their own interfaces.
package bridge

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Guard takes a *semel.Guard and returns the methods that package driver or
// saga calls on it.
var Guard func(guard any) (methods any)

// CheckPayload takes a semel.Payload, and returns the error with which a call with it is
// refused.
var CheckPayload func(payload any) error

// Execution takes a *semel.Execution and returns the methods that package driver or
// saga calls on it.
var Execution func(execution any) (methods any)

// RunningCall takes the context of a handler, and returns the key of the record of its
// call; in a step, of the call that the step belongs to. Package outbox does not import
// package semel, so it calls this function, which is nil if the program does not link
// package semel.
var RunningCall func(ctx context.Context) (k store.Key, ok bool)
