package semel_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Rule 6: the store's clock decides, however wrong that of the process is.
func TestTheStoresClockDecides(t *testing.T) {
	for name, off := range map[string]time.Duration{"behind": -50 * 365 * 24 * time.Hour, "ahead": 50 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			at := time.Now().Add(off)
			st := memstore.New(&memstore.Options{Now: func() time.Time { return at }})
			g := guard(t, st, &semel.Options{Reservation: time.Minute})

			crash(t, st, semel.Retry, "live", time.Minute)
			_, err := g.Run(t.Context(), ann("live"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if e, _ := err.(*semel.Error); e.RetryAfter != time.Minute {
				t.Errorf("RetryAfter is %v of a lease of 1m0s", e.RetryAfter)
			}
			at = at.Add(time.Minute)
			res, err := g.Run(t.Context(), ann("live"), answer("taken over"))
			wantBody(t, res, err, "taken over", false)

			first := reserve(t, g, ann("reserved"))
			if again := reserve(t, g, ann("reserved")); again.Fresh || again.Token != first.Token {
				t.Errorf("a reservation that holds was made again: %+v", again)
			}
			at = at.Add(time.Minute)
			if again := reserve(t, g, ann("reserved")); !again.Fresh {
				t.Errorf("a reservation that has lapsed was not made again: %+v", again)
			}

			crash(t, st, semel.Park, "lapsed", time.Minute)
			at = at.Add(time.Minute)
			if stats, err := sweep.Once(t.Context(), st, nil); err != nil || stats.Parked != 1 {
				t.Errorf("swept %+v, %v", stats, err)
			}
			wantState(t, g, "lapsed", store.Unknown)
		})
	}
}
