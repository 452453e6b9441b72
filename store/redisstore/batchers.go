package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// nodeBatchers are the batchers for one kind of call. In a cluster each node has its own,
// so that a node that hangs delays no call to another.
type nodeBatchers struct {
	newBatcher func() *batcher
	only       *batcher // of a single server, or of a node that is not known

	mu        sync.RWMutex
	byAddress map[string]*batcher
	closed    bool
}

func newBatchers(newBatcher func() *batcher) *nodeBatchers {
	return &nodeBatchers{newBatcher: newBatcher, only: newBatcher(), byAddress: map[string]*batcher{}}
}

// forNode is the batcher of the node with an address.
func (bs *nodeBatchers) forNode(node string) *batcher {
	if node == "" {
		return bs.only
	}
	bs.mu.RLock()
	b := bs.byAddress[node]
	bs.mu.RUnlock()
	if b != nil {
		return b
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b = bs.byAddress[node]; b == nil {
		b = bs.newBatcher()
		bs.byAddress[node] = b
		if bs.closed {
			b.Close()
		}
	}
	return b
}

// close waits until queued calls have their answers.
func (bs *nodeBatchers) close() {
	bs.mu.Lock()
	bs.closed = true
	all := slices.Collect(maps.Values(bs.byAddress))
	bs.mu.Unlock()
	for _, b := range append(all, bs.only) {
		b.Close()
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
