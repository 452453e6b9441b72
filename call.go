package semel

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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
	step     *stepCall // Execution.Step made the call; nil: it is none
	rerun    bool      // the call is the second key of a rerun, so that '#' is allowed
	saga     bool      // package saga made the call, so that '#' is allowed
	stored   bool      // Tenant and Key are as the store has them: hashed, with Options.HashKeys
	err      error     // why the call is invalid, if that is known already
}

// storeKey is the call's key as the store knows it. No other place hashes keys, so that
// all that is read from the store has the key that the store needs.
func (c *Call) storeKey(o *Options) store.Key {
	key := store.Key{Operation: c.Operation, Tenant: c.Tenant, Value: c.Key}
	if key.Tenant == Shared {
		key.Tenant = ""
	}
	if c.stored {
		return key
	}
	return key.Hashed(o.HashKeys)
}

// isRedeemed reports whether the call came from a token.
func (c *Call) isRedeemed() bool { return !c.reserved.IsZero() }

// check returns why the call is invalid, or nil.
func (c *Call) check() error {
	if c.err != nil {
		return c.err
	}
	if c.step == nil && !c.rerun && !c.saga {
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

// newStep makes the call of a step in the run x.
func newStep(x *Execution, name string) Call {
	path := name
	if x.step != "" {
		path = x.step + "#" + name
	}
	c := Call{
		Operation: x.key.Operation + "#" + name, Tenant: x.key.Tenant, Key: x.key.Value,
		Payload: NoPayload(), step: &stepCall{parent: x, name: path},
	}
	if c.Tenant == "" {
		c.Tenant = Shared
	}
	const longest = 4 * names.Max
	switch err := names.Check("step", name); {
	case err != nil:
		c.err = err
	case strings.Contains(name, "#"):
		c.err = fmt.Errorf("step %q: must not contain '#', which separates a step's name from its parent's", name)
	case !utf8.ValidString(name):
		c.err = errors.New("step: is not valid UTF-8")
	case len(path) > longest:
		c.err = fmt.Errorf("step: nested too deep; the name would have %d bytes, at most %d are allowed", len(path), longest)
	}
	return c
}
