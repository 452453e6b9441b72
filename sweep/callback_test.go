package sweep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// The Observe of a Guard is often that of its sweep, too. Its panic does not end the process.
func TestRun_OptionPanics_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, passes := memstore.New(nil), 0
		crash(t, st, "a", store.Proposal{Lease: time.Second})
		crash(t, st, "b", store.Proposal{Lease: time.Second})
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := sweep.Run(ctx, st, &sweep.Options{
			Observe:   func(context.Context, semel.Event) { panic("boom") },
			AfterStep: func(sweep.Stats) { panic("boom") },
			AfterPass: func(sweep.Stats, error) {
				if passes++; passes == 2 {
					cancel()
				}
				panic("boom")
			},
		}); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"a", "b"} {
			if got, _ := stateOf(t, st, key); got != store.Released {
				t.Errorf("the record of %q is %v, want %v", key, got, store.Released)
			}
		}
		if passes != 2 {
			t.Errorf("%d passes, want 2", passes)
		}
	})
}
