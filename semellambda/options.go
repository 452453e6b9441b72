package semellambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// Options says what a call is. T is the event of Wrap or the record of a batch.
//
// A JSON pointer (RFC 6901), such as "/detail/orderId", selects from a document: the
// event of Wrap, the body of an SQS message, the data of a Kinesis record, or the
// whole record of a DynamoDB stream ("/dynamodb/Keys/id/S"). The source and the type of
// an event count, too: see "The identity of a record" in the package documentation.
type Options[T any] struct {
	// Operation names the work, as in semel.Call. It is required.
	Operation string
	// Tenant names the account that the key of an event belongs to. [Shared] is for
	// keys that are unique over all accounts. It is required.
	Tenant func(event T) (string, error)

	// KeyPointers select the key: strings or integers. The event must have all of
	// them. The type of an SQS message's event is in the key, too. Nil, and no Key: the ID that SQS, Kinesis or DynamoDB gave the record. It
	// recognizes a second delivery, but not a record that its producer sent twice.
	KeyPointers []string
	// Key makes the key of an event. Not together with KeyPointers.
	Key func(event T) (string, error)

	// PayloadPointers select what duplicates must have in common. Nil, and no
	// Payload: the whole document. The source and the event type are added. For a field that differs in each delivery, such as
	// a time of sending, name the others. Documents are compared by semel.JSON, and by
	// their bytes if they are no JSON or JSON refuses them.
	PayloadPointers []string
	// Payload makes the payload of an event. Not together with PayloadPointers.
	Payload func(event T) (semel.Payload, error)

	// Wait is how long a duplicate waits for the end of a call in progress.
	Wait time.Duration
	// Report gets the error of each record that is not done, and the record's ID. Nil:
	// slog.Default logs it as a warning. Wrap returns its errors and ignores Report.
	Report func(ctx context.Context, id string, err error)
}

// Shared is a Tenant for keys that are unique over all accounts.
func Shared[T any](T) (string, error) { return semel.Shared, nil }

// check returns everything that is wrong. A batch has keys of its own.
func (o *Options[T]) check(name string, run semel.Runner, hasHandler, ownKeys bool) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("semellambda: %s: "+format, append([]any{name}, args...)...))
	}
	if run == nil {
		bad("run: is nil; pass a *semel.Guard or a store's Atomic")
	}
	if !hasHandler {
		bad("the handler is nil")
	}
	if err := driver.CheckOperation(o.Operation); err != nil {
		bad("Options.Operation: %w", err)
	}
	if o.Tenant == nil {
		bad("Options.Tenant: is nil; name the account, or set Shared")
	}
	if o.Key != nil && o.KeyPointers != nil {
		bad("Options: set Key or KeyPointers, not both")
	}
	if o.Key == nil && len(o.KeyPointers) == 0 && (!ownKeys || o.KeyPointers != nil) {
		bad("Options: set Key or KeyPointers, so that a duplicate can be recognized")
	}
	if o.Payload != nil && o.PayloadPointers != nil {
		bad("Options: set Payload or PayloadPointers, not both")
	}
	if o.PayloadPointers != nil && len(o.PayloadPointers) == 0 {
		bad("Options.PayloadPointers: is empty; to compare nothing, return semel.NoPayload from Payload")
	}
	for _, list := range [][]string{o.KeyPointers, o.PayloadPointers} {
		for _, p := range list {
			if err := checkPointer(p); err != nil {
				bad("Options: %w", err)
			}
		}
	}
	return errors.Join(errs...)
}

// call makes the call of an event. id is the source's own ID; empty: it has none.
func (o *Options[T]) call(event T, doc json.RawMessage, id string, env envelope) (call semel.Call, err error) {
	call = semel.Call{Operation: o.Operation, Wait: o.Wait}
	if call.Tenant, err = o.Tenant(event); err != nil {
		return call, o.invalid(fmt.Errorf("tenant: %w", err))
	}
	switch {
	case o.Key != nil:
		call.Key, err = o.Key(event)
	case o.KeyPointers != nil:
		call.Key, err = keyAt(doc, o.KeyPointers)
		call.Key = env.keyOf(call.Key)
	default:
		call.Key = id
	}
	if err != nil {
		return call, o.invalid(err)
	}
	if call.Payload, err = o.payload(event, doc, env); err != nil {
		return call, o.invalid(err)
	}
	return call, nil
}

func (o *Options[T]) payload(event T, doc json.RawMessage, env envelope) (semel.Payload, error) {
	switch {
	case o.Payload != nil:
		return o.Payload(event)
	case o.PayloadPointers != nil:
		fields, err := fieldsAt(doc, o.PayloadPointers)
		if err != nil {
			return semel.Payload{}, err
		}
		doc, err = json.Marshal(fields) // ordered by name
		return env.payload(fields, doc), err
	case json.Valid(doc):
		return env.payload(doc, doc), nil
	}
	return semel.Bytes(env.parts(doc)...), nil
}

// invalid refuses an event of which no call can be made. An outage of the service
// that knows the tenant stays one.
func (o *Options[T]) invalid(cause error) error {
	cause = driver.ReadableError(cause)
	reason := semel.ErrInvalid
	if errors.Is(cause, semel.ErrUnavailable) {
		reason = semel.ErrUnavailable
	}
	return &semel.Error{Reason: reason, Operation: o.Operation, Cause: cause}
}

func (o *Options[T]) report(ctx context.Context, id string, err error) {
	if o.Report != nil {
		broken := recovered("Options.Report", func() error { o.Report(ctx, id, err); return nil })
		if broken == nil {
			return
		}
		err = errors.Join(broken, err)
	}
	slog.Default().WarnContext(ctx, "semellambda: the record is not done", "operation", o.Operation, "id", id, "error", err)
}
