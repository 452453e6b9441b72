package semelsqs

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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

// A request without an answer delays later entries, such as the extension of a message, for a
// second and not until its time limit. After it has ended, entries share requests as before.
func TestBatcher_RequestIsSlow_LaterEntryIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(chan int, 10)
		b := batcher{send: func(ctx context.Context, es []*entry) {
			if sizes <- len(es); es[0].handle == "first" {
				<-ctx.Done()
			} else {
				time.Sleep(slowRequest / 2)
			}
		}}
		began := time.Now()
		first := b.start("first", 0)
		synctest.Wait()
		later := b.start("later", 0)
		<-later.done
		if took := time.Since(began); took > 2*slowRequest {
			t.Errorf("the later entry took %v", took)
		}
		<-first.done
		synctest.Wait()
		es := []*entry{b.start("a", 0)}
		synctest.Wait()
		es = append(es, b.start("b", 0), b.start("c", 0))
		for _, e := range es {
			<-e.done
		}
		synctest.Wait()
		if got, want := []int{<-sizes, <-sizes, <-sizes, <-sizes}, []int{1, 1, 1, 2}; !slices.Equal(got, want) || b.flights > 0 || b.slow > 0 {
			t.Errorf("the requests have %v entries, want %v; %d run, %d are slow", got, want, b.flights, b.slow)
		}
	})
}
