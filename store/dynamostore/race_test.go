package dynamostore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/semel-go/semel/store"
)

// callers race for a key in each round, through four handles: one wins, and all see
// its record.
func TestClaim_64CallersRace_OneWinsEachRound(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	handles := []*Store{s, reopen(t, s).(*Store), reopen(t, s).(*Store), reopen(t, s).(*Store)}
	const callers = 64
	rounds, wrong := 6, 0
	if long() {
		rounds = 500
	}
	for round := range rounds {
		key := fmt.Sprint("round ", round)
		var found [callers]store.Found
		var errs [callers]error
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range callers {
			p := proposal(key)
			all.Go(func() {
				<-start
				found[i], errs[i] = handles[i%len(handles)].Claim(t.Context(), p)
			})
		}
		close(start)
		all.Wait()
		won := 0
		for i := range callers {
			if errs[i] != nil {
				t.Fatalf("round %d, caller %d: %v", round, i, errs[i])
			}
			if found[i].Won {
				won++
			}
			if found[i].Record.Owner != found[0].Record.Owner {
				t.Errorf("round %d: two callers saw two owners", round)
			}
		}
		if won != 1 {
			wrong++
			t.Errorf("round %d: %d callers won, want 1", round, won)
		}
	}
	figure(t, "of 64 callers that race for a key, one wins", false, int64(rounds), int64(wrong), "")
}
