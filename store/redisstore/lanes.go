package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// lanes are those of one kind of call. In a cluster each node has its own, so
// that one that hangs holds up no call for another.
type lanes struct {
	fresh func() *lane
	one   *lane // of a single server, or of a node that is not known

	mu     sync.RWMutex
	by     map[string]*lane // by the node's address
	closed bool
}

func newLanes(fresh func() *lane) *lanes {
	return &lanes{fresh: fresh, one: fresh(), by: map[string]*lane{}}
}

// at is the lane of a node.
func (ls *lanes) at(node string) *lane {
	if node == "" {
		return ls.one
	}
	ls.mu.RLock()
	l := ls.by[node]
	ls.mu.RUnlock()
	if l != nil {
		return l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l = ls.by[node]; l == nil {
		l = ls.fresh()
		ls.by[node] = l
		if ls.closed {
			l.Close()
		}
	}
	return l
}

// close answers what is queued.
func (ls *lanes) close() {
	ls.mu.Lock()
	ls.closed = true
	all := slices.Collect(maps.Values(ls.by))
	ls.mu.Unlock()
	for _, l := range append(all, ls.one) {
		l.Close()
	}
}

// nodeOf is the address of the node that a call goes to, as far as it is known
// before it is sent. It is empty for a single server.
func (s *Store) nodeOf(ctx context.Context, c *call) string {
	if s.cluster == nil {
		return ""
	}
	node, err := s.cluster.MasterForKey(ctx, c.record)
	if err != nil {
		return "" // who sends it finds out, too
	}
	return node.Options().Addr
}
