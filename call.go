package semel

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/store"
)

// Shared is the Tenant of calls whose keys all tenants share: for jobs, consumer
// groups, and services with a single tenant. No tenant can have this name.
const Shared = "\x00shared"

// Call identifies one call. Two calls are duplicates of each other if Operation,
// Tenant and Key are equal. An incomplete call fails with ErrInvalid when it is
// run, and so does the zero Call.
type Call struct {
	// Operation names the work: "charge", "POST /payments/{id}", a consumer
	// group. Make it a constant: it is a part of each key, so it must never
	// change, and it labels events and metrics. 1 to 255 bytes of UTF-8 text
	// without control characters and without '#'.
	Operation string
	// Tenant names the account or user that the key belongs to, or is Shared.
	// Never use a credential: a refreshed token would change the key, and the
	// work would run again. 1 to 255 bytes without control characters.
	Tenant string
	// Key is the idempotency key: 1 to 255 bytes without control characters.
	Key string
	// Payload is what all calls with this key must have in common. A call that
	// differs fails with ErrMismatch. NoPayload compares nothing.
	Payload Payload
	// Wait is how long a duplicate waits for the end of a call in progress.
	// Zero: it fails at once with ErrInProgress.
	Wait time.Duration

	reserved time.Time // creation time of the reservation, if the call was redeemed
	child    bool      // Execution.Step made the call, so that '#' is allowed
	err      error     // why the call is invalid, if that is known already
}

// storeKey is the call's key as the store knows it.
func (c *Call) storeKey() store.Key {
	key := store.Key{Operation: c.Operation, Tenant: c.Tenant, Value: c.Key}
	if key.Tenant == Shared {
		key.Tenant = ""
	}
	return key
}

// isRedeemed reports whether the call came from a token.
func (c *Call) isRedeemed() bool { return !c.reserved.IsZero() }

// check returns why the call is invalid, or nil.
func (c *Call) check() error {
	if c.err != nil {
		return c.err
	}
	if !c.child {
		if err := names.CheckOperation(c.Operation); err != nil {
			return err
		}
	}
	if c.Tenant == "" {
		return errors.New("tenant: is empty; name the account or user, or say semel.Shared")
	}
	if c.Tenant != Shared {
		if err := names.Check("tenant", c.Tenant); err != nil {
			return err
		}
	}
	if err := names.Check("key", c.Key); err != nil {
		return err
	}
	return c.Payload.check()
}

// step makes the call of a recovery point of the run with the given key.
func step(parent store.Key, name string) Call {
	c := Call{
		Operation: parent.Operation + "#" + name, Tenant: parent.Tenant, Key: parent.Value,
		Payload: NoPayload(), child: true,
	}
	if c.Tenant == "" {
		c.Tenant = Shared
	}
	const longest = 4 * names.Max
	if err := names.Check("step", name); err != nil {
		c.err = err
	} else if strings.Contains(name, "#") {
		c.err = fmt.Errorf("step %q: must not contain '#', which separates a step's name from its parent's", name)
	} else if len(c.Operation) > longest {
		c.err = fmt.Errorf("step: nested too deep; the operation's name would have %d bytes, at most %d are allowed", len(c.Operation), longest)
	}
	return c
}
