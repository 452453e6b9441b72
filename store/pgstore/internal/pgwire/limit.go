package pgwire

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limited runs a request to the server, which ends after limit at the latest. If there was
// no answer by then, the error wraps context.DeadlineExceeded. A limit of zero is none.
func Limited(ctx context.Context, limit time.Duration, request func(ctx context.Context) error) error {
	if limit == 0 {
		return request(ctx)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := request(within)
	if err == nil || within.Err() == nil || ctx.Err() != nil {
		return err
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("the store gave no answer within StoreTimeout, %v: %w", limit, err)
}

// Limited runs a request to the server within StoreTimeout.
func (d *Database) Limited(ctx context.Context, request func(ctx context.Context) error) error {
	return Limited(ctx, d.StoreTimeout, request)
}

// LockWait is how long a statement waits for a locked row, as a setting of the server. It is
// shorter than StoreTimeout, so that the server's answer still comes in time: a row that
// another transaction has locked is no outage.
func (d *Database) LockWait() string {
	return Millis(min(d.LockTimeout, d.StoreTimeout-d.StoreTimeout/5))
}
