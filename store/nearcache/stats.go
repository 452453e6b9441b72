package nearcache

// Stats is what a cache holds and has done. Each figure is right by itself;
// together they may be of slightly different moments.
type Stats struct {
	Hits    uint64 // lookups that were answered here
	Misses  uint64 // lookups that went to the store
	Evicted uint64 // records that had to make room
	Records int    // kept now, own claims included
	Bytes   int64  // that they take
}

// Stats tells what the cache holds and has done.
func (s *Store) Stats() Stats {
	var sum Stats
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sum.Hits += sh.stats.Hits
		sum.Misses += sh.stats.Misses
		sum.Evicted += sh.stats.Evicted
		sum.Records += len(sh.by)
		sum.Bytes += sh.bytes
		sh.mu.Unlock()
	}
	return sum
}
