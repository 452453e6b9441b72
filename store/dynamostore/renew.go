package dynamostore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// renewers is how many renewals of a batch are in flight at once.
const renewers = 32

// Renew implements store.Store with a conditional UpdateItem for each lease. A
// renewal that arrives late does not shorten a lease that was renewed since.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	errs := make([]error, len(held))
	if err := ctx.Err(); err != nil || len(held) == 0 {
		return errs, s.explain("renew", err)
	}
	if err := s.checkClock(ctx, store.Processing); err != nil {
		return nil, s.explain("renew", err)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(renewers, len(held)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(held); i = int(next.Add(1)) - 1 {
				errs[i] = s.explain("renew", s.renew(ctx, &held[i], d))
			}
		})
	}
	all.Wait()
	// The replies have the server's time. If the clock was set meanwhile, the new ends of the
	// leases may be wrong, so that no handler may count on them.
	if err := s.clock.check(); err != nil {
		return nil, s.explain("renew", err)
	}
	return errs, nil
}

func (s *Store) renew(ctx context.Context, l *store.Lease, d time.Duration) error {
	now := s.clock.read()
	r := store.Record{Key: l.Key, State: store.Processing, Until: store.Time(store.Micros(now.Add(d))), Updated: now}
	it := item{attrUntil: numberOf(store.Micros(r.Until)), attrUpdated: numberOf(store.Micros(r.Updated))}
	s.index(&r, it)
	number := numberOf(renewalNumber())
	it[attrRenewal] = number
	e := newExpression()
	change := e.assign(it, attrUntil, attrUpdated, attrDue, attrDueAt, attrRenewal)
	condition := fmt.Sprintf("%s AND (%s OR %s < %s)", e.allEqual(leaseItem(l), leaseAttributes...),
		e.equal(attrRenewal, nil), e.name(attrRenewal), e.value(number))
	_, err := s.update(ctx, l.Key, e, change, condition, types.ReturnValueNone)
	if err == nil {
		return nil
	}
	_, was, err := s.refusedLease(ctx, l, err)
	if err == nil && was.State != store.Processing {
		err = store.ErrLeaseLost
	}
	return err // nil: this renewal, sent before, or a later one
}
