package semel

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// Call identifies one call: a value to copy and to run again. NewCall,
// Guard.Redeem and Execution.Step make one; the zero Call is invalid.
type Call struct {
	// Wait is how long a duplicate of a call in flight waits for its end.
	// Zero: not at all; it fails at once with ErrInProgress.
	Wait time.Duration

	key     store.Key
	payload Payload
	token   time.Time // set for the bearer of a reservation
	err     error     // why the call is invalid; it fails when it is run
}

// NewCall identifies a call by its scope, its key of 1 to 255 bytes without
// control characters, and what calls with that key must have in common. An
// invalid call fails with ErrInvalid when it is run.
func NewCall(s Scope, key string, p Payload) Call {
	c := Call{key: store.Key{Operation: string(s.operation), Tenant: s.tenant, Value: key}, payload: p}
	if c.err = s.Check(); c.err == nil {
		c.err = checkName("key", key)
	}
	if c.err == nil {
		c.err = p.check()
	}
	return c
}

// Key is the call's idempotency key.
func (c *Call) Key() string { return c.key.Value }

// Operation is what the call is for.
func (c *Call) Operation() Operation { return Operation(c.key.Operation) }

func (c *Call) check() error {
	if c.err == nil && c.key == (store.Key{}) {
		return fmt.Errorf("call: is the zero Call; make one with NewCall")
	}
	return c.err
}
