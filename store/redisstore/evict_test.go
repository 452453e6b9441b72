package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// evicting is a server that forgets when it is short of memory: when it has
// taken 2 MB more than it needs when it is empty, which differs by a lot.
func evicting(t *testing.T) *redistest.Server {
	srv := redistest.Start(t, "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "10")
	c := clientAt(t, srv.URL())
	info, err := c.InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	used, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", itoa(used+2<<20)).Err(); err != nil {
		t.Fatal(err)
	}
	return srv
}

func TestOpen_ServerEvicts_IsRefused(t *testing.T) {
	t.Parallel()
	srv := evicting(t)
	s := openOn(t, clientAt(t, srv.URL()), nil)
	for range 2 { // as long as it is so
		if f, err := s.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrUnsafe) || f.Won || !strings.Contains(err.Error(), "allkeys-lru") {
			t.Errorf("Claim: won %v, error %v", f.Won, err)
		}
	}
	if st, err := Open(t.Context(), srv.URL(), nil); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Open: %v, %v", st, err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "maxmemory-policy") {
		t.Errorf("Check: %v", err)
	}
	if err := s.client.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	claim(t, s, "k") // and no longer
}

// With the check overridden, the loss is seen: the harness is not blind.
func TestEviction_RecordOfARunningCall_GrantsTwice(t *testing.T) {
	t.Parallel()
	s := openOn(t, clientAt(t, evicting(t).URL()), &Options{AllowEviction: true})
	first, _ := s.name(claim(t, s, "first").Key.Digest())
	body := strings.Repeat("x", 10_000)
	gone := false
	for i := 0; i < 2000 && !gone; i++ {
		filler := claim(t, s, fmt.Sprint("filler ", i))
		if err := s.Settle(t.Context(), filler.Lease(), completion(body)); err != nil && !errors.Is(err, store.ErrLeaseLost) { // it may be gone too
			t.Fatal(err)
		}
		n, err := s.client.Exists(t.Context(), first).Result() // which does not count as a use, as a claim does
		if err != nil {
			t.Fatal(err)
		}
		gone = n == 0
	}
	f, err := s.Claim(t.Context(), proposal("first"))
	if err != nil {
		t.Fatal(err)
	}
	twice := f.Won
	figure(t, "with another maxmemory-policy than noeviction a claim is granted twice", true, 1, failures(twice), "Options.AllowEviction")
	if !twice {
		t.Error("the claim was not evicted: the harness is blind")
	}
}

// At its maxmemory, a server that does not evict refuses what is new, goes on
// with replays, and can be swept.
func TestFullServer_ReplayAndSweep_Succeed(t *testing.T) {
	t.Parallel()
	c := clientAt(t, redistest.Start(t, redistest.Fast...).URL())
	s := openOn(t, c, nil)
	complete(t, s, "kept", "answer")
	r := claim(t, s, "held")
	over := claim(t, s, "over")
	end := completion("x")
	end.Keep = 0
	if err := s.Settle(t.Context(), over.Lease(), end); err != nil {
		t.Fatal(err)
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Claim(t.Context(), proposal("new")); !errors.Is(err, ErrFull) || f.Won {
		t.Errorf("a new claim: won %v, error %v", f.Won, err)
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("y")); !errors.Is(err, ErrFull) {
		t.Errorf("a settlement: %v", err)
	}
	if got := get(t, s, "kept"); string(got.Outcome.Body) != "answer" {
		t.Errorf("a read: %q", got.Outcome.Body)
	}
	if f, err := s.Claim(t.Context(), proposal("kept")); err != nil || f.Won || string(f.Record.Outcome.Body) != "answer" {
		t.Errorf("a duplicate: won %v, error %v, %q", f.Won, err, f.Record.Outcome.Body)
	}
	replaysBesideWhatIsRefused(t, s, func(err error) bool { return errors.Is(err, ErrFull) })
	res, err := s.Sweep(t.Context(), "", 10)
	if err != nil || res.Deleted != 1 {
		t.Errorf("a sweep deleted %d, error %v", res.Deleted, err)
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), testKey("new")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the refused claim: %v", err)
	}
	if again := claim(t, s, "over"); again.Fence <= over.Fence {
		t.Errorf("fence %d after %d", again.Fence, over.Fence)
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("y")); err != nil {
		t.Error(err)
	}
}
