package kafkatest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka/kafkapg"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A message without a key, or older than Retention, is not handled and delays
// no other.
func TestServeKeyed_NoKeyOrTooOld_IsNotHandled(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	late := msg("late", "")
	old := br.record(&late)
	old.Partition, old.Timestamp = 0, time.Now().Add(-8*24*time.Hour)
	if err := br.cl.ProduceSync(t.Context(), &kgo.Record{Topic: br.name, Value: []byte("no key")}, old).FirstErr(); err != nil {
		t.Fatal(err)
	}
	br.to(t, 0, msg("good", ""))
	b.member(t, keyed, br.source(t, nil), nil, nil)
	br.settled(t)
	b.want(t, "good")
	for to, want := range map[driver.Action][2]string{
		driver.DeadLetter: {"no key", string(driver.ReasonNoKey)}, driver.Quarantine: {"late", string(driver.ReasonLate)},
	} {
		copies := br.Copies(t, to)
		if len(copies) != 1 || string(copies[0].Body) != want[0] {
			t.Errorf("%v: %d copies", to, len(copies))
			continue
		}
		if why, _ := copies[0].Header(driver.LetterReason); why != want[1] {
			t.Errorf("%v: the reason is %q, want %q", to, why, want[1])
		}
	}
}

func TestServeKeyed_Retention_IsChecked(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	a, err := pgstore.NewAtomic(b.st, &semel.Options{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	call := consume.Keyed("bank", consume.FromHeader(consume.KeyHeader), consume.Reject())
	if err := kafkapg.ServeKeyed(t.Context(), br.source(t, nil), a, call, b.write, nil); err == nil || !strings.Contains(err.Error(), "Retention") {
		t.Errorf("outcomes are kept for an hour, messages for days: %v", err)
	}
	br.to(t, 0, msg("good", ""))
	if err := br.cl.ProduceSync(t.Context(), &kgo.Record{Topic: br.name, Value: []byte("no key")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := br.source(t, nil)
	go func() {
		done <- kafkapg.ServeKeyed(ctx, s, a, call, b.write, &consume.Options{AllowShortRetention: true})
	}()
	if err := wait(t, "Serve ended", done); !errors.Is(err, consume.ErrRejected) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b.want(t, "good")
	if at := br.committed(t, 0); at != 1 {
		t.Errorf("offset %d is committed, want 1: the message without a key stays", at)
	}
}
