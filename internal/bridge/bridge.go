// Package bridge gives package driver access to unexported parts of package
// semel. Package semel sets the variables when it is initialised; package driver
// calls them and asserts the results to its own interfaces.
package bridge

// Guard takes a *semel.Guard and returns the methods that package driver calls
// on it.
var Guard func(guard any) (methods any)

// Execution takes a *semel.Execution and returns the methods that package driver
// calls on it.
var Execution func(execution any) (methods any)
