package shardstore_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

func named(t testing.TB, names ...string) *shardstore.Store {
	t.Helper()
	var shards []shardstore.Shard
	for _, n := range names {
		shards = append(shards, shardstore.Shard{Name: n, Store: memstore.New(nil)})
	}
	return newStore(t, shards...)
}

// Where a key is must not change from one release to the next: then it would
// lose its record. If this fails, the code is wrong and not the test.
func TestShardOf_KnownKeys_NeverChanges(t *testing.T) {
	s := named(t, "a", "b", "c", "redis-1")
	var got []string
	for i := range 16 {
		got = append(got, s.On(key(fmt.Sprint(i))))
	}
	got = append(got, s.On(store.Key{}), s.On(store.Key{Operation: "\xff", Tenant: "\x00", Value: strings.Repeat("x", 255)}))
	const want = "c a redis-1 c a a c b a b c redis-1 a redis-1 redis-1 c a b"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("keys are on\n%s, want\n%s", g, want)
	}
}

func TestShardOf_OrderOfShards_DoesNotMatter(t *testing.T) {
	a, b := named(t, "a", "b", "c"), named(t, "c", "a", "b")
	for i := range 1000 {
		if k := key(fmt.Sprint(i)); a.On(k) != b.On(k) {
			t.Fatalf("key %d is on %s or on %s", i, a.On(k), b.On(k))
		}
	}
	if got := fmt.Sprint(b.Names()); got != "[a b c]" {
		t.Errorf("names %s", got)
	}
}

func TestShardOf_ShardAdded_MovesOnlyItsShare(t *testing.T) {
	const keys = 20_000
	for n := 1; n < 12; n++ {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("shard-", i))
		}
		old := named(t, names...)
		for _, added := range []string{fmt.Sprint("shard-", n), "0", "zz"} {
			moved, now := 0, named(t, append(names, added)...)
			for i := range keys {
				k := key(fmt.Sprint(i))
				switch was, is := old.On(k), now.On(k); {
				case was == is:
				case is == added:
					moved++
				default:
					t.Fatalf("%d shards and %q: a key moved from %q to %q", n, added, was, is)
				}
			}
			share := float64(keys) / float64(n+1)
			if d := math.Abs(float64(moved) - share); d > 6*math.Sqrt(share) {
				t.Errorf("%d shards and %q: %d of %d keys moved, want about %.0f", n, added, moved, keys, share)
			}
		}
	}
}

func TestShardOf_SimilarKeys_SpreadEvenly(t *testing.T) {
	const keys = 30_000
	for _, names := range [][]string{{"a", "b"}, {"redis-1", "redis-2", "redis-3"}, {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"}} {
		s, has := named(t, names...), map[string]int{}
		for i := range keys {
			has[s.On(store.Key{Operation: "charge", Tenant: "acc-1", Value: fmt.Sprint("order-", i)})]++
		}
		share := float64(keys) / float64(len(names))
		for _, n := range names {
			if d := math.Abs(float64(has[n]) - share); d > 6*math.Sqrt(share) {
				t.Errorf("%v: %q has %d of %d keys, want about %.0f", names, n, has[n], keys, share)
			}
		}
	}
}

func TestNew_InvalidShards_AreNamed(t *testing.T) {
	m := memstore.New(nil)
	for name, shards := range map[string][]shardstore.Shard{
		"none":           {},
		"no name":        {{Store: m}},
		"a bar":          {{Name: "a|b", Store: m}},
		"a comma":        {{Name: "a,b", Store: m}},
		"an end of line": {{Name: "a\n", Store: m}},
		"a long name":    {{Name: strings.Repeat("x", 65), Store: m}},
		"one name twice": {{Name: "a", Store: m}, {Name: "a", Store: m}},
		"no store":       {{Name: "a"}},
	} {
		if _, err := shardstore.New(shards); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzOn(f *testing.F) {
	f.Add("op", "t", "v")
	f.Add("", "", "\xff")
	names := []string{"a", "b", "c", "d", "e"}
	all, fewer := named(f, names...), named(f, names[:4]...)
	f.Fuzz(func(t *testing.T, op, tenant, value string) {
		k := store.Key{Operation: op, Tenant: tenant, Value: value}
		was, is := fewer.On(k), all.On(k)
		if is != was && is != "e" || all.On(k) != is {
			t.Errorf("%+q is on %q of four shards and on %q of five", k, was, is)
		}
	})
}
