package kafkatest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

func TestServeKeyed_RedrivenLetter_RunsAgainOnce(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	reopen, err := semel.New(b.st, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	down.Store(true)
	b.member(t, keyed, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if down.Load() && slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "bad" }) {
			return semel.Final(errors.New("the bank is down"))
		}
		return b.write(ctx, tx, ms)
	}, &consume.Options{Reopen: reopen})
	br.to(t, 0, msg("bad", "o"), msg("good", "o"))
	br.settled(t)
	letters := br.Copies(t, driver.DeadLetter)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want 1", len(letters))
	}
	down.Store(false)
	again := letters[0]
	again.OrderKey = "o"
	again.Headers = append(again.Headers, store.Header{Name: consume.RedriveHeader, Value: "ann: the bank is back"})
	br.to(t, 0, again, again, msg("last", "o"), msg("bad", "o"))
	br.settled(t)
	b.want(t, "good", "bad", "last")
	if n := len(br.Copies(t, driver.DeadLetter)); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}
