package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// Store keeps records in Redis. It is safe for concurrent use. Make it with
// [New] or [Open], and close it.
type Store struct {
	opt        Options
	scripts    *scriptSet
	client     redis.UniversalClient
	cluster    *redis.ClusterClient // the client, if it is one of a cluster
	sweptFence string               // its Redis key on a single server
	changes    *nodeBatchers        // claims and swaps
	settles    *nodeBatchers
	reads      *nodeBatchers
	opened     bool // the client is the store's
	closed     atomic.Bool

	inspections nodeInspections
}

var _ interface {
	store.Store
	store.Lister
	store.Checker
	store.Pinger
	store.Journal
	store.Timers
	store.Eraser
	store.Confirmer
	store.Receiver
} = (*Store)(nil)

// Claim implements store.Store in one round trip, which concurrent claims share.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.claim(ctx, &p)
	return f, s.explain("claim", err)
}

func (s *Store) claim(ctx context.Context, p *store.Proposal) (f store.Found, err error) {
	in, err := s.checkBeforeClaim(ctx, p)
	if err != nil {
		return s.refusedClaim(ctx, p, err)
	}
	c, err := s.claimCall(p)
	if err != nil {
		return f, err
	}
	if err := s.do(ctx, s.changes, c); err != nil {
		return s.refusedClaim(ctx, p, err)
	}
	switch v := c.val.(type) {
	case int64: // the fence
		r := p.Insert(store.Time(c.now), 0)
		r.Fence = uint64(v)
		f = p.Found(&r, store.Time(c.now))
	case string:
		f, err = existing(p, v, c.now)
	default:
		return f, unexpected(c.val)
	}
	switch {
	case err != nil:
		return f, err
	case !f.Won:
		return requireConfirmed(f, c)
	}
	if err := s.checkGranted(ctx, in, c); err != nil {
		return store.Found{}, err
	}
	return f, nil
}

// Swap implements store.Store in one round trip, which concurrent claims
// share.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := s.swap(ctx, &seen, &p)
	return f, s.explain("swap", err)
}

func (s *Store) swap(ctx context.Context, seen *store.Seen, p *store.Proposal) (f store.Found, err error) {
	if p.Key != seen.Key {
		return f, errors.New("the proposal is for another key than what was seen")
	}
	in, err := s.checkBeforeClaim(ctx, p)
	if err != nil {
		return f, err
	}
	rest, err := appendRest(nil, p)
	if err != nil {
		return f, err
	}
	c := s.newCall(&s.scripts.swap, &p.Key, newStateChange(p.State, p.Attempt, p.Lease, p.Keep),
		appendOwner(nil, p.Owner), rest, appendHolder(nil, seen.Owner, seen.Fence), seenTimes(seen), []byte{bit(p.Restart)})
	if err := s.do(ctx, s.changes, c); err != nil {
		return f, err
	}
	if f, err = swapped(p, c); err != nil {
		return f, err
	}
	if !f.Won {
		return requireConfirmed(f, c)
	}
	if isClaim(p) {
		if err := s.checkGranted(ctx, in, c); err != nil {
			return store.Found{}, err
		}
	}
	if c.ackErr == nil {
		return f, nil
	}
	err = s.confirm(ctx, c, func(again *call) (err error) {
		f, err = swapped(p, again)
		return err
	})
	return f, err
}

// seenTimes is until, expires and state as the scripts compare them.
func seenTimes(seen *store.Seen) []byte {
	until := binary.BigEndian.AppendUint64(nil, uint64(store.Micros(seen.Until)))
	times := binary.BigEndian.AppendUint64(until, uint64(store.Micros(seen.Expires)))
	return append(times, byte(seen.State))
}

// swapped reads the answer to a swap.
func swapped(p *store.Proposal, c *call) (f store.Found, err error) {
	switch v := c.val.(type) {
	case nil:
		return store.Found{Now: store.Time(c.now)}, store.ErrNotFound
	case string:
		return existing(p, v, c.now)
	case []any:
		if len(v) < 2 {
			return f, unexpected(c.val)
		}
		fence, _ := v[0].(int64)
		created, _ := v[1].(int64)
		r := p.Replace(&store.Record{}, store.Time(c.now))
		r.Created, r.Fence = store.Time(created), uint64(fence)
		return p.Found(&r, store.Time(c.now)), nil
	}
	return f, unexpected(c.val)
}

func (s *Store) claimCall(p *store.Proposal) (*call, error) {
	rest, err := appendRest(make([]byte, 0, 256), p)
	if err != nil {
		return nil, err
	}
	return s.newCall(&s.scripts.claim, &p.Key, newStateChange(p.State, p.Attempt, p.Lease, p.Keep), appendOwner(nil, p.Owner), rest), nil
}

// existing is the record that was found in place of an insert. It may be the
// proposal's own, from an earlier sending.
func existing(p *store.Proposal, v string, now int64) (store.Found, error) {
	r, err := read(&p.Key, v)
	if err != nil {
		return store.Found{}, err
	}
	return p.Found(&r, store.Time(now)), nil
}

// Settle implements store.Store in one round trip, which concurrent
// settlements share.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	return s.explain("settle", s.settle(ctx, &l, &t))
}

func (s *Store) settle(ctx context.Context, l *store.Lease, t *store.Settlement) error {
	if s.closed.Load() {
		return ErrClosed
	}
	c, err := s.settleCall(l, t)
	if err != nil {
		return err
	}
	if err := s.do(ctx, s.settles, c); err != nil {
		return err
	}
	if err := settled(l, t, c); err != nil {
		return err
	}
	return s.confirm(ctx, c, func(again *call) error {
		if t.State == store.Released { // another may hold the key by now
			return nil
		}
		return settled(l, t, again)
	})
}

// settled returns nil if the answer says that a settlement is recorded.
func settled(l *store.Lease, t *store.Settlement, c *call) error {
	switch v := c.val.(type) {
	case int64:
		if v != 1 {
			return store.ErrLeaseLost
		}
	case string: // it was settled before, by this or another settlement
		r, err := read(&l.Key, v)
		if err != nil {
			return err
		}
		if r.Lease() != *l || !t.Done(&r) {
			return store.ErrLeaseLost
		}
	default:
		return unexpected(c.val)
	}
	return nil
}

func (s *Store) settleCall(l *store.Lease, t *store.Settlement) (*call, error) {
	result, err := appendResult(nil, t.State, t.Error, &t.Outcome)
	if err != nil {
		return nil, err
	}
	return s.newCall(&s.scripts.settle, &l.Key, newStateChange(t.State, t.Attempt, t.Wait, t.Keep), appendHolder(nil, l.Owner, l.Fence), result), nil
}

// Get implements store.Store in one round trip, which concurrent reads share. With
// Options.Replicas or Fsync, a completed or failed record takes a second one, which
// confirms it.
func (s *Store) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.get(ctx, &k)
	return f, s.explain("get", err)
}

func (s *Store) get(ctx context.Context, k *store.Key) (store.Found, error) {
	f, err := s.look(ctx, s.reads, k, s.newCall(&s.scripts.get, k, stateChange{}))
	if err == nil && s.opt.waitsForAcks() && f.Record.State.Terminal() {
		return s.confirmRead(ctx, k, f)
	}
	return f, err
}

// look sends a call that reads a record.
func (s *Store) look(ctx context.Context, bs *nodeBatchers, k *store.Key, c *call) (f store.Found, err error) {
	if s.closed.Load() {
		return f, ErrClosed
	}
	if err := s.do(ctx, bs, c); err != nil {
		return f, err
	}
	f.Now = store.Time(c.now)
	switch v := c.val.(type) {
	case string:
		f.Record, err = read(k, v)
		return f, err
	case nil:
		return f, store.ErrNotFound
	}
	return f, unexpected(c.val)
}

// Renew implements store.Store in one round trip that waits for no other calls.
// If a node of a cluster is down, only its leases fail.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	errs := make([]error, len(held))
	if err := ctx.Err(); err != nil || len(held) == 0 {
		return errs, s.explain("renew", err)
	}
	calls := make([]*call, len(held))
	for i := range held {
		l := &held[i]
		calls[i] = s.newCall(&s.scripts.renew, &l.Key, stateChange{until: micros(d), expires: unset}, appendHolder(nil, l.Owner, l.Fence))
	}
	s.send(ctx, calls)
	for i, c := range calls {
		switch {
		case c.err != nil:
			errs[i] = s.explain("renew", c.err)
		case c.val != int64(1):
			errs[i] = store.ErrLeaseLost
		case c.ackErr != nil:
			errs[i] = s.explain("renew", notAcknowledged(c.ackErr))
		}
	}
	return errs, nil
}

func bit(set bool) byte {
	if set {
		return '1'
	}
	return '0'
}
