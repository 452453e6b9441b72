package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

func TestRun_OrderSentAgain_IsBookedOnce(t *testing.T) {
	dir := t.TempDir()
	var first, second, third strings.Builder
	for _, c := range []struct {
		w      *strings.Builder
		orders int
		want   string
	}{
		{&first, 5, "15 messages sent, 5 new bookings, 5 in all, stock of 9950 cents sold\n"},
		{&second, 5, "15 messages sent, 0 new bookings, 5 in all, stock of 9950 cents sold\n"}, // the same orders once more
		{&third, 7, "21 messages sent, 2 new bookings, 7 in all, stock of 13930 cents sold\n"},
	} {
		if err := run(t.Context(), dir, c.orders, c.w); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(c.w.String(), c.want) {
			t.Errorf("got %s, want %s", c.w, c.want)
		}
	}
	if n := strings.Count(first.String(), "booking order-"); n != 5 {
		t.Errorf("%d handlers ran: %s", n, &first)
	}
}

func TestServe_InvalidOrder_DeadLetter(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	b, err := startBroker(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	s, err := openShop(ctx, dir, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, body := range []string{"nonsense", `{"id":"order-1","item":"book","cents":1}`, `{"id":"order-1","item":"book","cents":2}`} {
		m := nats.NewMsg("orders.placed")
		m.Data = []byte(body)
		m.Header.Set(consume.KeyHeader, body[:min(len(body), 14)])
		if _, err := b.js.PublishMsg(ctx, m); err != nil {
			t.Fatal(err)
		}
		if err := serve(ctx, b, s); err != nil { // one after the other
			t.Fatal(err)
		}
	}
	if n, _, err := s.booked(ctx); err != nil || n != 1 {
		t.Errorf("%d bookings, %v", n, err)
	}
	letters, err := b.js.Stream(ctx, "LETTERS")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []driver.Reason{driver.ReasonFailed, driver.ReasonMismatch} {
		m, err := letters.GetMsg(ctx, uint64(i+1))
		if err != nil || m.Header.Get(driver.LetterReason) != string(want) {
			t.Errorf("letter %d: %v, %v; want %s", i+1, m, err, want)
		}
	}
}

// An order that fails each time has an end, too, though its attempts are rolled
// back with it.
func TestServe_OrderAlwaysFails_DeadLetter(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := startBroker(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	s, err := openShop(ctx, t.TempDir(), &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.db.ExecContext(ctx, "DROP TABLE booking"); err != nil {
		t.Fatal(err)
	}
	if err := send(ctx, b, 1); err != nil {
		t.Fatal(err)
	}
	if err := serve(ctx, b, s); err != nil {
		t.Fatal(err)
	}
	letters, err := b.js.Stream(ctx, "LETTERS")
	if err != nil {
		t.Fatal(err)
	}
	m, err := letters.GetMsg(ctx, 1)
	if err != nil || m.Header.Get(driver.LetterReason) != string(driver.ReasonDeliveries) {
		t.Errorf("letter: %v, %v; want %s", m, err, driver.ReasonDeliveries)
	}
}

func TestRun_ContextCanceled_Ends(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, t.TempDir(), 5, &strings.Builder{}); err == nil {
		t.Error("it went on")
	}
}
