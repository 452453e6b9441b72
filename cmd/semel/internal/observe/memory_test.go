package observe

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func pay(n int) store.Proposal {
	return store.Proposal{
		Key: store.Key{Operation: "http", Tenant: "a-tenant", Value: fmt.Sprintf("%08d-40d5-43dd-bc93-6894a57f9324", n)}, State: store.Processing, Owner: store.Owner{byte(n), byte(n >> 8), 1},
		Attempt: 1, Lease: time.Minute, Fingerprint: store.Fingerprint{Alg: "semelhttp/2", Sum: fmt.Sprintf("%032d", n)},
	}
}

// put adds a key whose answer has a body.
func put(t *testing.T, m *Memory, n int) {
	t.Helper()
	f, err := m.Claim(t.Context(), pay(n))
	if err == nil {
		err = m.Settle(t.Context(), f.Record.Lease(), store.Settlement{
			State: store.Completed, Keep: time.Hour, Outcome: store.Outcome{Code: 201, Body: make([]byte, 2000), Header: []store.Header{{Name: "A", Value: "b"}}},
		})
	}
	if err != nil {
		t.Fatalf("%d: %v", n, err)
	}
}

func TestMemory_ClaimInOlderHalf_StaysWithItsOwner(t *testing.T) {
	m := NewMemory(4)
	f, err := m.Claim(t.Context(), pay(0))
	if err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	put(t, m, 1)
	put(t, m, 2) // 0 and 1 are the older half
	if errs, err := m.Renew(t.Context(), []store.Lease{f.Record.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Errorf("renewal: %v, %v", errs, err)
	}
	if again, err := m.Claim(t.Context(), store.Proposal{Key: pay(0).Key, State: store.Processing, Owner: store.Owner{9}, Lease: time.Minute}); err != nil || again.Won {
		t.Errorf("a second claim: %+v, %v", again, err)
	}
	if held, forgotten := m.Keys(); held != 3 || forgotten != 0 {
		t.Errorf("%d keys, %d forgotten", held, forgotten)
	}
	put(t, m, 3)
	put(t, m, 4) // 0 and 1 are forgotten
	if err := m.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Keep: time.Hour}); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a claim that is forgotten is settled: %v", err)
	}
	if _, err := m.Get(t.Context(), pay(1).Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a key that is forgotten is there: %v", err)
	}
	if held, forgotten := m.Keys(); held != 3 || forgotten != 2 {
		t.Errorf("%d keys, %d forgotten", held, forgotten)
	}
}

// The default number of keys takes less than the help says.
func TestMemory_DefaultNumberOfKeys_Under100MB(t *testing.T) {
	const keys = 100_000
	heap := func() int {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	before := heap()
	m := NewMemory(keys)
	for n := range keys {
		put(t, m, n)
	}
	bytes := heap() - before
	if held, _ := m.Keys(); held != keys || bytes > 100e6 {
		t.Errorf("%d keys take %d MB", held, bytes/1e6)
	}
	t.Logf("%d keys take %d MB", keys, bytes/1e6)
	runtime.KeepAlive(m)
}
