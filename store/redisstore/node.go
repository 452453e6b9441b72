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
	name string // in a cluster its address; else empty
	on   redis.UniversalClient
}

// nodes are the masters, in the order of their names.
func (s *Store) nodes(ctx context.Context) ([]node, error) {
	if s.cluster == nil {
		return []node{{on: s.client}}, nil
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

// scan is a page of the names of records on a node.
func (s *Store) scan(ctx context.Context, on node, from uint64, count int64) (names []string, next uint64, err error) {
	names, next, err = on.on.Scan(ctx, from, s.pattern(), count).Result()
	slices.Sort(names)
	return slices.Compact(names), next, err
}

// onNode runs a script for each name.
func (s *Store) onNode(ctx context.Context, on node, sc *script, names []string) []*call {
	cs := make([]*call, len(names))
	for i, n := range names {
		cs[i] = &call{script: sc, record: n, floor: s.floorOf(n)}
	}
	s.resolve(cs, func(ps []*parcel) { exchange(ctx, on.on, ps) })
	return cs
}

// clock is the time on a node.
func (s *Store) clock(ctx context.Context, on node) (int64, error) {
	c := &call{script: &s.scripts.now}
	s.resolve([]*call{c}, func(ps []*parcel) { exchange(ctx, on.on, ps) })
	return c.now, c.err
}

// moved reports that a record went to another node while it was looked for: a
// pass may miss it, and the next one sees it.
func moved(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
}
