package pgstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel"
)

// One goroutine makes the batches while another runs them: each key is done
// once, however near the next call with it is, and is a replay behind that.
func TestPrefetch_WhileBatchRuns_Concurrent(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, q := newWorker(p), p.a.Prefetcher()
	const batches, size = 60, 20
	type made struct {
		n     *PrefetchedBatch
		calls []semel.Call
	}
	next := make(chan made, 2)
	go func() {
		defer close(next)
		for b := range batches {
			keys := make([]string, size)
			for i := range keys {
				keys[i] = fmt.Sprintf("%04d", b*size+i)
				if back := []int{3, size, 2*size + 1}[i%3]; i%4 == 3 && b*size+i >= back { // here, in the batch before, or in the one before that
					keys[i] = fmt.Sprintf("%04d", b*size+i-back)
				}
			}
			calls := poll(keys...)
			next <- made{q.Prefetch(t.Context(), calls), calls}
		}
	}()
	seen, looks, all := map[string]bool{}, 0, []string(nil)
	for m := range next {
		if m.n.waitPrefetched() {
			looks++
		}
		for i, e := range m.n.Run(t.Context(), w.rows(m.calls)) {
			key := m.calls[i].Key
			if e.Err != nil || e.Replayed != seen[key] {
				t.Errorf("%s: replayed %v, %v; want %v", key, e.Replayed, e.Err, seen[key])
			}
			if !seen[key] {
				all = append(all, key)
			}
			seen[key] = true
		}
	}
	for key, n := range w.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	slices.Sort(all)
	if got := p.payments(t); !slices.Equal(got, all) {
		t.Errorf("%d effects, want %d", len(got), len(all))
	}
	if looks < batches/10 { // the pool is small
		t.Errorf("of %d batches %d were looked for ahead", batches, looks)
	}
}
