package semelsqs

import (
	"context"
	"slices"
	"testing"
)

// A lone entry is sent at once. While its request runs, full requests are sent beside
// it, and the rest follows in one request.
func TestBatcher_WhileARequestRuns_OthersShareTheNext(t *testing.T) {
	sizes, goOn := make(chan int, 10), make(chan struct{})
	b := batcher{send: func(_ context.Context, es []*entry) {
		sizes <- len(es)
		if len(es) == 1 {
			<-goOn
		}
	}}
	start := func(n int) (es []*entry) {
		for range n {
			es = append(es, b.start("handle", 0))
		}
		return es
	}
	es := start(1)
	got := []int{<-sizes}
	es = append(es, start(2*maxBatch+4)...)
	got = append(got, <-sizes, <-sizes)
	close(goOn)
	got = append(got, <-sizes)
	for i, e := range es {
		if err := e.wait(t.Context()); err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if want := []int{1, maxBatch, maxBatch, 4}; !slices.Equal(got, want) {
		t.Errorf("the requests have %v entries, want %v", got, want)
	}
}

// However many entries wait, the requests at once have a limit.
func TestBatcher_ManyEntries_RequestsHaveLimit(t *testing.T) {
	running, goOn := make(chan struct{}, 1000), make(chan struct{})
	b := batcher{send: func(context.Context, []*entry) {
		running <- struct{}{}
		<-goOn
		<-running
	}}
	var es []*entry
	for range 100 * maxBatch {
		es = append(es, b.start("handle", 0))
	}
	b.mu.Lock()
	n := b.flights
	b.mu.Unlock()
	if n != maxFlights {
		t.Errorf("%d requests run at once, want %d", n, maxFlights)
	}
	close(goOn)
	for _, e := range es {
		if err := e.wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
