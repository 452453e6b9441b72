package storetest

import (
	"flag"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestBench_RunsItsOperations(t *testing.T) {
	was := flag.Lookup("test.benchtime").Value.String()
	if err := flag.Set("test.benchtime", "50x"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("test.benchtime", was) }()
	calls := map[Op]int{}
	var opened []*Fault
	testing.Benchmark(func(b *testing.B) {
		Bench(b, Harness{Open: func(testing.TB) store.Store {
			f := NewFault(memstore.New(nil), nil)
			opened = append(opened, f)
			return f
		}})
		if b.Failed() {
			t.Error("a benchmark failed")
		}
	})
	for _, f := range opened {
		for op := range ops {
			calls[op] += f.Calls(op)
		}
	}
	if calls[OpClaim] < 50*9 || calls[OpSettle] < 50*4 || calls[OpRenew] < 50*3 {
		t.Errorf("the benchmarks made the calls %v", calls)
	}
}
