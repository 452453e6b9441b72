package saga_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// simProcess is a process with a store that it reaches by a bad network.
type simProcess struct {
	*memstore.Store
	w    *simWorld
	dead atomic.Bool
	left atomic.Int64 // how many requests it still makes; 0: no limit
	stop context.CancelFunc
}

func (p *simProcess) kill() {
	p.dead.Store(true)
	p.stop()
}

// through makes one request to the store.
func through[T any](p *simProcess, send func() (T, error)) (T, error) {
	var none T
	if p.left.Load() > 0 && p.left.Add(-1) == 0 {
		p.kill()
	}
	if p.w.chance("process frozen before a request", 60) {
		sleep(p.w.upTo(3 * simLease))
	}
	switch {
	case p.dead.Load():
		return none, errDead
	case p.w.chance("a request was lost", 25):
		return none, errBoom
	case p.w.chance("a reply was lost", 25):
		_, _ = send()
		return none, errBoom
	case p.w.chance("a request was doubled", 25):
		_, _ = send()
	case p.w.chance("a request was late", 40):
		delay := p.w.upTo(3 * simLease)
		go func() {
			sleep(delay)
			_, _ = send()
		}()
		return none, errBoom
	}
	v, err := send()
	if p.dead.Load() {
		return none, errDead
	}
	return v, err
}

func (p *simProcess) Claim(ctx context.Context, q store.Proposal) (store.Found, error) {
	return through(p, func() (store.Found, error) { return p.Store.Claim(context.Background(), q) })
}

func (p *simProcess) Swap(ctx context.Context, seen store.Seen, q store.Proposal) (store.Found, error) {
	return through(p, func() (store.Found, error) {
		f, err := p.Store.Swap(context.Background(), seen, q)
		if err == nil && f.Won && strings.HasPrefix(q.Holder, protocol.SagaOperator) {
			p.w.decides(q.Key.Value, true)
		}
		return f, err
	})
}

func (p *simProcess) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	held = slices.Clone(held)
	return through(p, func() ([]error, error) { return p.Store.Renew(context.Background(), held, d) })
}

func (p *simProcess) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := through(p, func() (struct{}, error) {
		err := p.Store.Settle(context.Background(), l, s)
		if err == nil && strings.HasPrefix(s.Error, protocol.SagaOperator) {
			p.w.decides(l.Key.Value, false)
		}
		return struct{}{}, err
	})
	return err
}

func (p *simProcess) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return through(p, func() (store.Found, error) { return p.Store.Get(context.Background(), k) })
}

func (p *simProcess) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	_, err := through(p, func() (struct{}, error) { return struct{}{}, p.Store.RecordStep(context.Background(), l, s) })
	return err
}

func (p *simProcess) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	return through(p, func() ([]store.Step, error) { return p.Store.Steps(context.Background(), l) })
}

func (p *simProcess) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	return through(p, func() (bool, error) { return p.Store.SetTimer(context.Background(), k, seen, next, wait) })
}

func (p *simProcess) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	_, err := through(p, func() (struct{}, error) { return struct{}{}, p.Store.DropTimer(context.Background(), k, seen) })
	return err
}

func (p *simProcess) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	type answer struct {
		due []store.Timer
		now time.Time
	}
	a, err := through(p, func() (a answer, err error) {
		a.due, a.now, err = p.Store.DueTimers(context.Background(), operation, within, limit)
		return a, err
	})
	return a.due, a.now, err
}
