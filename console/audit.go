package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/store"
)

// Act is a change that an operator has asked for.
type Act struct {
	// Verb is the change, in the words of the commands: resolve, reopen, saga retry, saga back,
	// saga skip, outbox retry or outbox drop.
	Verb string
	// Verdict is what resolve says about a call in doubt: happened, did-not-happen or failed.
	Verdict          string
	Operator, Reason string
	// Key and Fence name the record that the operator has seen; zero for a message.
	Key   store.Key
	Fence uint64
	// Position names a message of the outbox; zero for a record.
	Position int64
	// Step is the step of a saga that is skipped, and NotHappened are those of which the
	// operator says that they did not happen.
	Step        string
	NotHappened []string
}

// audited carries out an act between the two calls of Options.Audit, and logs it.
func (c *Console) audited(ctx context.Context, a Act, fn func() error) (err error) {
	end := func(error) error { return nil }
	if c.options.Audit != nil {
		if end, err = c.options.Audit(ctx, a); err != nil {
			err = &problem{Status: http.StatusServiceUnavailable, Text: "Nothing was changed: " + err.Error()}
		}
	}
	result := acts.NotDone
	if err == nil {
		err = fn()
		result = acts.Result(err)
		if missing := end(err); missing != nil && err == nil {
			err = &problem{Status: http.StatusInternalServerError, Heading: "Done, with an error", Text: "It is done, but: " + missing.Error()}
		}
	}
	c.log(ctx, a, result, err)
	return err
}

// log writes a line about a change that an operator has asked for.
func (c *Console) log(ctx context.Context, a Act, result string, err error) {
	attrs := []any{"operator", a.Operator}
	if a.Position != 0 {
		attrs = append(attrs, "position", a.Position)
	} else {
		attrs = append(attrs, "operation", a.Key.Operation, "tenant", a.Key.Tenant, "key", a.Key.Short(), "fence", a.Fence)
	}
	if a.Verdict != "" {
		attrs = append(attrs, "verdict", a.Verdict)
	}
	if a.Step != "" {
		attrs = append(attrs, "step", a.Step)
	}
	if len(a.NotHappened) > 0 {
		attrs = append(attrs, "not_happened", a.NotHappened)
	}
	acts.Log(ctx, c.options.Log, a.Verb, acts.ViaConsole, result, err, append(attrs, "reason", a.Reason)...)
}

// Is makes a form that cannot be carried out an invalid call, for Options.Audit.
func (p *problem) Is(target error) bool {
	return errors.Is(target, semel.ErrInvalid) && p.Status < http.StatusInternalServerError
}
