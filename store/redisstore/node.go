package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

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

// Ping implements store.Pinger. It returns nil if the server answers a read; in a
// cluster, if any node answers one for a key of its own.
func (s *Store) Ping(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	var parts []func(context.Context) error
	add := func(node redis.Cmdable, name string) {
		parts = append(parts, func(ctx context.Context) error {
			if err := node.Get(ctx, name).Err(); !errors.Is(err, redis.Nil) {
				return err
			}
			return nil
		})
	}
	if s.cluster == nil {
		add(s.client, s.opt.Prefix+pingName)
		return s.explain("ping", store.PingParts(ctx, parts))
	}
	seen := map[*redis.Client]bool{}
	for b := range buckets {
		name := string(s.appendBucket(nil, b)) + pingName
		node, err := s.cluster.MasterForKey(ctx, name)
		if err != nil {
			return s.explain("ping", err)
		}
		if !seen[node] {
			seen[node] = true
			add(node, name)
		}
	}
	return s.explain("ping", store.PingParts(ctx, parts))
}

// scan returns one page of the Redis keys of records on a node.
func (s *Store) scan(ctx context.Context, on node, from uint64, count int64) (names []string, next uint64, err error) {
	names, next, err = on.client.Scan(ctx, from, s.pattern(), count).Result()
	slices.Sort(names)
	return slices.Compact(names), next, err
}

// onNode runs a script for each Redis key.
func (s *Store) onNode(ctx context.Context, on node, sc *script, names []string) []*call {
	cs := make([]*call, len(names))
	for i, n := range names {
		cs[i] = &call{script: sc, record: n, sweptFence: s.sweptFenceOf(n)}
	}
	s.resolve(cs, func(ps []*command) { exchange(ctx, on.client, ps) })
	return cs
}

// clock returns the time on a node.
func (s *Store) clock(ctx context.Context, on node) (int64, error) {
	c := &call{script: &s.scripts.now}
	s.resolve([]*call{c}, func(ps []*command) { exchange(ctx, on.client, ps) })
	return c.now, c.err
}

// moved reports that a record is on its way to another node. A pass may miss it,
// and the next pass finds it.
func moved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}
