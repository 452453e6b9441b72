package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// node is a server that holds a part of the records.
type node struct {
	name   string // in a cluster its address; otherwise empty
	client redis.UniversalClient
}

// nodes returns the masters, sorted by name.
func (s *Store) nodes(ctx context.Context) ([]node, error) {
	if s.cluster == nil {
		return []node{{client: s.client}}, nil
	}
	ctx, cancel := s.partContext(ctx) // the client asks any node, which may hang, and then takes what it knows
	defer cancel()
	var mu sync.Mutex
	var all []node
	err := s.cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, node{c.Options().Addr, c})
		return nil
	})
	slices.SortFunc(all, func(a, b node) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// explain names the node in its error.
func (n *node) explain(err error) error {
	if err == nil || n.name == "" {
		return err
	}
	return fmt.Errorf("node %s: %w", n.name, err)
}

// partContext is the context in which one node of a cluster is asked for its part of a
// whole. A single server has all the time.
func (s *Store) partContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.cluster == nil {
		return context.WithCancel(ctx)
	}
	return store.PartContext(ctx)
}

// part is a node of a cluster and the buckets of its slots.
type part struct {
	node
	buckets []int
}

// partition returns the parts of a cluster, sorted by name. A single server has none.
func (s *Store) partition(ctx context.Context) ([]*part, error) {
	if s.cluster == nil {
		return nil, nil
	}
	byNode := map[*redis.Client]*part{}
	for b := range buckets {
		client, err := s.cluster.MasterForKey(ctx, s.pingKey(b))
		if err != nil {
			return nil, err
		}
		if byNode[client] == nil {
			byNode[client] = &part{node: node{client.Options().Addr, client}}
		}
		byNode[client].buckets = append(byNode[client].buckets, b)
	}
	return slices.SortedFunc(maps.Values(byNode), func(a, b *part) int { return strings.Compare(a.name, b.name) }), nil
}

// pingKey is a Redis key in the slot of a bucket that does not exist.
func (s *Store) pingKey(bucket int) string { return string(s.appendBucket(nil, bucket)) + pingName }

// moving returns an error if a slot of records moves from its node, or has moved: that node
// then answers a read of a key that does not exist with a redirect. It also returns an error
// if the node gives no answer that tells.
func (s *Store) moving(ctx context.Context, p *part) error {
	ctx, cancel := s.partContext(ctx)
	defer cancel()
	pipe := p.client.Pipeline()
	for _, b := range p.buckets {
		pipe.Get(ctx, s.pingKey(b))
	}
	answers, _ := pipe.Exec(ctx) // each command has its error
	for _, a := range answers {
		switch err := a.Err(); {
		case moved(err):
			return fmt.Errorf("records of a slot that is moving, or has just moved, may be missing; list again when it has moved (if no move is under way, redis-cli --cluster fix ends it): %w", err)
		case err != nil && !errors.Is(err, redis.Nil):
			return fmt.Errorf("records may be missing, because the node does not say whether a slot has moved meanwhile; list again: %w", err)
		}
	}
	return nil
}

// Ping implements store.Pinger. It returns nil if the server answers a read; in a
// cluster, if any node answers one for a key of its own.
func (s *Store) Ping(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	var asks []func(context.Context) error
	add := func(node redis.Cmdable, name string) {
		asks = append(asks, func(ctx context.Context) error {
			if err := node.Get(ctx, name).Err(); !errors.Is(err, redis.Nil) {
				return err
			}
			return nil
		})
	}
	if s.cluster == nil {
		add(s.client, s.opt.Prefix+pingName)
	}
	parts, err := s.partition(ctx)
	if err != nil {
		return s.explain("ping", err)
	}
	for _, p := range parts {
		add(p.client, s.pingKey(p.buckets[0]))
	}
	return s.explain("ping", store.PingParts(ctx, asks))
}

// scan returns one page of the Redis keys of records on a node.
func (s *Store) scan(ctx context.Context, n node, from uint64, count int64) (names []string, next uint64, err error) {
	names, next, err = n.client.Scan(ctx, from, s.pattern(), count).Result()
	slices.Sort(names)
	return slices.Compact(names), next, err
}

// onNode runs a script for each Redis key.
func (s *Store) onNode(ctx context.Context, n node, sc *script, names []string) []*call {
	calls := make([]*call, len(names))
	for i, name := range names {
		calls[i] = &call{script: sc, record: name, sweptFence: s.sweptFenceOf(name)}
	}
	s.sendWithFallback(calls, func(commands []*command) { sendCommands(ctx, n.client, commands) })
	return calls
}

// Clocks returns the times of the slowest and the fastest clock. Each master of a cluster
// has a clock; a single server has one, and both times are the same. Package moved waits for
// the fastest, because fences are times of the clock of a record's node. If a master does not
// answer, Clocks returns its error.
func (s *Store) Clocks(ctx context.Context) (slowest, fastest time.Time, err error) {
	if s.closed.Load() {
		return slowest, fastest, ErrClosed
	}
	all, err := s.nodes(ctx)
	if err != nil {
		return slowest, fastest, s.explain("read the clocks", err)
	}
	for i, n := range all {
		micros, err := s.clock(ctx, n)
		if err != nil {
			return time.Time{}, time.Time{}, s.explain("read the clocks", n.explain(err))
		}
		now := store.Time(micros)
		if i == 0 || now.Before(slowest) {
			slowest = now
		}
		if now.After(fastest) {
			fastest = now
		}
	}
	return slowest, fastest, nil
}

// clock returns the time on a node.
func (s *Store) clock(ctx context.Context, n node) (int64, error) {
	c := &call{script: &s.scripts.now}
	s.sendWithFallback([]*call{c}, func(commands []*command) { sendCommands(ctx, n.client, commands) })
	return c.now, c.err
}

// moved reports that a record is on another node, or is on its way there. It does not mean
// that there is no record.
func moved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}
