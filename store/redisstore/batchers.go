package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// batchers are the batchers for one kind of call. In a cluster each node has its own,
// so that a node that hangs delays no call to another.
type batchers struct {
	newBatcher func() *batcher
	only       *batcher // of a single server, or of a node that is not known

	mu        sync.RWMutex
	byAddress map[string]*batcher
	closed    bool
}

func newBatchers(newBatcher func() *batcher) *batchers {
	return &batchers{newBatcher: newBatcher, only: newBatcher(), byAddress: map[string]*batcher{}}
}

// forNode is the batcher of the node with an address.
func (ls *batchers) forNode(node string) *batcher {
	if node == "" {
		return ls.only
	}
	ls.mu.RLock()
	l := ls.byAddress[node]
	ls.mu.RUnlock()
	if l != nil {
		return l
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l = ls.byAddress[node]; l == nil {
		l = ls.newBatcher()
		ls.byAddress[node] = l
		if ls.closed {
			l.Close()
		}
	}
	return l
}

// close waits until queued calls have their answers.
func (ls *batchers) close() {
	ls.mu.Lock()
	ls.closed = true
	all := slices.Collect(maps.Values(ls.byAddress))
	ls.mu.Unlock()
	for _, l := range append(all, ls.only) {
		l.Close()
	}
}

// nodeOf is the address of the node that a call is for, or empty if that is not
// known, or if there is a single server.
func (s *Store) nodeOf(ctx context.Context, c *call) string {
	if s.cluster == nil {
		return ""
	}
	node, err := s.cluster.MasterForKey(ctx, c.record)
	if err != nil {
		return "" // sending the call returns this error, too
	}
	return node.Options().Addr
}
