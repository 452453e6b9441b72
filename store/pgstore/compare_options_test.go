package pgstore

import (
	"fmt"
	"os"
	"testing"
)

// TestOptions_Compared measures what options cost against a store without them:
// SEMEL_TEST_COMPARE=1. Each of the tests in it takes less than a minute.
func TestOptions_Compared(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	t.Run("notify", func(t *testing.T) { // nobody waits, but four stores listen
		b := newComparison(t)
		on := b.with(t, &Options{Notify: true})
		for range 3 {
			b.m.open(t, &Options{Notify: true})
		}
		for _, g := range []int{64, 256} {
			b.m.versus(t, "leased, new", g, 1, b.leased(0, 0), named("notify", on.leased(0, 0)))
			b.m.versus(t, "atomic, new", g, 1, b.atomic(0), named("notify", on.atomic(0)))
		}
	})
	t.Run("partitions", func(t *testing.T) {
		b := newComparison(t)
		cs := []competitor{b.leased(0, 0)}
		for _, n := range []int{8, 64} {
			name := fmt.Sprint(n, " parts")
			cs = append(cs, named(name, b.with(t, &Options{Schema: name, Partitions: n}).leased(0, 0)))
		}
		for _, g := range []int{64, 256} {
			b.m.versus(t, "leased, new", g, 1, cs...)
		}
	})
}

// with is b with another store on the same server.
func (b *comparison) with(t *testing.T, o *Options) *comparison {
	t.Helper()
	s := b.m.open(t, o)
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &comparison{m: b.m, s: s, pub: b.pub, a: a}
}

func named(name string, c competitor) competitor {
	c.name = name
	return c
}
