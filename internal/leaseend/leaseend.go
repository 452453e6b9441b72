// Package leaseend keeps in a context the time at which leases have to end.
package leaseend

import (
	"context"
	"time"
)

type key struct{}

// With returns a context whose claims hold until end at the latest.
func With(ctx context.Context, end time.Time) context.Context {
	if earlier, ok := From(ctx); ok && earlier.Before(end) {
		return ctx
	}
	return context.WithValue(ctx, key{}, end)
}

// From returns the time at which leases have to end; ok is false if there is none.
func From(ctx context.Context) (end time.Time, ok bool) {
	end, ok = ctx.Value(key{}).(time.Time)
	return end, ok
}
