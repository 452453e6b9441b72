package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The attempts of a Parked step without effect stay in the record. They must not use it up while
// the other system is away, and the saga must go on soon after that.
func TestParked_NoEffectDuringOutage_GoesOnAfterIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		outage, pause, every time.Duration // pause: the longest between two attempts
	}{
		"an hour":      {time.Hour, time.Minute, 10 * time.Second},
		"a night":      {8 * time.Hour, 8 * time.Hour / 20, 10 * time.Second},
		"three months": {90 * 24 * time.Hour, 24 * time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				var attempts []time.Time
				begun := time.Now()
				d := w.three()
				d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
					return saga.Step(ctx, r, "charge", func(_ context.Context, at saga.At) (string, error) {
						attempts = append(attempts, time.Now())
						if time.Since(begun) < row.outage {
							return "", semel.NoEffect(errBoom)
						}
						return "charged", w.act("charge", at.Key())
					}, nil, saga.Parked())
				}
				s := newSaga(t, st, d)
				if err := s.Start(t.Context(), "ann", "1", book); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), row.outage+row.pause+2*row.every)
				defer stop()
				if err := s.Work(ctx, &saga.WorkOptions{Every: row.every}); err != nil {
					t.Fatal(err)
				}
				if f, err := st.Get(context.Background(), store.Key{Operation: "order##saga", Tenant: "ann", Value: "1"}); err != nil || f.Record.State != store.Completed {
					t.Errorf("%v after the outage the saga is %v (%v): %s", row.pause, f.Record.State, err, f.Record.LastError)
				}
				w.done(t, "charge")
				for i := range attempts[1:] {
					pause := attempts[i+1].Sub(attempts[i])
					if most := max(time.Minute, attempts[i].Sub(begun)/20); pause > min(most, 24*time.Hour)+row.every {
						t.Errorf("the pause after attempt %d, %v after the first, is %v", i+1, attempts[i].Sub(begun), pause)
					}
				}
			})
		})
	}
}
