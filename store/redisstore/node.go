package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
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
