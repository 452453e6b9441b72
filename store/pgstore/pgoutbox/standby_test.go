package pgoutbox

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The wait of a commit for the standby is cancelled, and its message is visible. A fail-over
// would take the message back with its effect, so it is not published before the standby has it.
func TestTake_StandbyAway_MessageIsNotPublished(t *testing.T) {
	t.Parallel()
	p := newShopAt(t, pgtest.Start(t, "fsync=off", "synchronous_commit=on").URL())
	lanes, _, err := p.box.Lease(t.Context(), "p", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	standby := func(names string) {
		for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			if _, err := p.app.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	take := func(limit time.Duration) ([]outbox.Taken, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return p.box.Take(ctx, lanes, nil, nil, 10)
	}
	standby("nobody")
	for waited := false; !waited; { // the setting takes a moment
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := pgx.BeginFunc(ctx, p.app, func(tx pgx.Tx) error { return p.box.Put(ctx, tx, outbox.Message{Topic: "t", Body: []byte("m")}) })
		waited = err != nil
		cancel()
	}
	for began := time.Now(); ; { // the cancelled commit takes a moment to become visible
		taken, err := take(time.Second)
		if err != nil {
			break
		}
		if len(taken) > 0 || time.Since(began) > time.Minute {
			t.Fatalf("%d messages are taken without the standby", len(taken))
		}
	}
	standby("")
	for began := time.Now(); ; {
		taken, err := take(time.Minute)
		if err == nil && len(taken) > 0 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("with the standby: %d messages, %v", len(taken), err)
		}
	}
}
