// Package txevents keeps the events of calls in a transaction until it has ended, because a
// transaction may be rolled back, or run again.
package txevents

import "context"

// Buffer has the events of one call in a transaction. The zero value is ready for use. Not
// safe for concurrent use.
type Buffer struct{ list []event }

type event struct {
	endsCall bool
	report   func(err error)
}

type key struct{}

// With returns a context whose events are kept in b.
func With(ctx context.Context, b *Buffer) context.Context { return context.WithValue(ctx, key{}, b) }

// Without returns a context for a handler, whose own calls report their events at once.
func Without(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return With(ctx, nil)
}

// From returns the buffer for the events of a context, or nil.
func From(ctx context.Context) *Buffer {
	b, _ := ctx.Value(key{}).(*Buffer)
	return b
}

// Add keeps an event. End calls report with its error.
func (b *Buffer) Add(endsCall bool, report func(err error)) {
	b.list = append(b.list, event{endsCall, report})
}

// Discard drops the events of a transaction that runs again.
func (b *Buffer) Discard() { b.list = nil }

// End reports the events of a call that has ended with err. Of those that end the call it
// reports the last; ended is false if there is none.
func (b *Buffer) End(err error) (ended bool) {
	list := b.list
	b.list = nil
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
