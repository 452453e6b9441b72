// Package held keeps the events of calls in a transaction until it has ended, because a
// transaction may be rolled back, or run again.
package held

import "context"

// Events are the events of one call. The zero value is ready for use. Not safe for
// concurrent use.
type Events struct{ list []event }

type event struct {
	endsCall bool
	report   func(err error)
}

type key struct{}

// With returns a context whose events are kept.
func With(ctx context.Context, e *Events) context.Context { return context.WithValue(ctx, key{}, e) }

// Without returns a context for a handler, whose own calls report their events at once.
func Without(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return With(ctx, nil)
}

// From returns where the events of a context are kept, or nil.
func From(ctx context.Context) *Events {
	e, _ := ctx.Value(key{}).(*Events)
	return e
}

// Add keeps an event. End calls report with its error.
func (e *Events) Add(endsCall bool, report func(err error)) {
	e.list = append(e.list, event{endsCall, report})
}

// Forget drops the events of a transaction that runs again.
func (e *Events) Forget() { e.list = nil }

// End reports the events of a call that has ended with err. Of those that end the call it
// reports the last; ended is false if there is none.
func (e *Events) End(err error) (ended bool) {
	list := e.list
	e.list = nil
	last := -1
	for i := range list {
		if list[i].endsCall {
			last = i
		}
	}
	for i := range list {
		if !list[i].endsCall || i == last {
			list[i].report(err)
		}
	}
	return last >= 0
}
