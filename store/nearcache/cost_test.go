package nearcache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// The counted size of a record is about its size on the heap.
func TestStats_Bytes_MatchHeap(t *testing.T) {
	for name, o := range map[string]store.Outcome{
		"small": {Code: 200},
		"usual": {Code: 201, Codec: "json", Body: []byte(strings.Repeat("x", 200)), Header: []store.Header{{Name: "Content-Type", Value: "application/json"}}},
		"large": {Code: 201, Body: make([]byte, 10<<10)},
	} {
		const n = 5000
		s, err := New(nowhere{}, &Options{MaxBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		now := store.Time(store.Micros(time.Now()))
		fs := make([]store.Found, n)
		for i := range fs {
			p := store.Proposal{Key: store.Key{Operation: "charge", Tenant: "acc-17", Value: fmt.Sprintf("8e03978e-40d5-43dd-bc93-%012d", i)}, State: store.Completed,
				Fingerprint: store.Fingerprint{Alg: "hmac-sha256", KeyID: "k1", Sum: strings.Repeat("s", 32)}, Holder: "host/17", Outcome: o, Keep: time.Hour}
			fs[i] = store.Found{Record: p.Insert(now, 0), Now: now}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range fs {
			q := lookup{asked: s.stamp()}
			q.shard, q.hash = s.shardOf(fs[i].Record.Key)
			if !s.cache(t.Context(), &q, &fs[i]) {
				t.Fatal("it is not kept")
			}
		}
		runtime.ReadMemStats(&after)
		took, counted := int64(after.TotalAlloc-before.TotalAlloc)/n, s.Stats().Bytes/n
		t.Logf("%s: a record takes %d bytes of heap, and %d are counted", name, took, counted)
		if counted < took*9/10 || counted > took*5/4 {
			t.Errorf("%s: %d bytes are counted for %d of heap", name, counted, took)
		}
	}
}

type nowhere struct{ store.Store }
