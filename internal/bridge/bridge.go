// Package bridge gives packages driver and saga access to unexported parts of package
// semel. Package semel sets the variables when it is initialised; the two packages
// call them and assert the results to their own interfaces.
package bridge

// Guard takes a *semel.Guard and returns the methods that package driver or
// saga calls on it.
var Guard func(guard any) (methods any)

// CheckPayload takes a semel.Payload, and returns the error with which a call with it is
// refused.
var CheckPayload func(payload any) error

// Execution takes a *semel.Execution and returns the methods that package driver or
// saga calls on it.
var Execution func(execution any) (methods any)
