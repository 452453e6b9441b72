package consumetest

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Each letter is sent back twice, as an operator does who is not sure about the first
// time. It runs once, before later messages of its order key.
func redriven(w *world) {
	guard, err := semel.New(w.store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		w.Fatal(err)
	}
	var down atomic.Bool
	down.Store(true)
	var failed atomic.Int64
	w.start(setup{options: consume.Options{Reopen: guard}, handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "k" && down.Load() {
			failed.Add(1)
			return &semel.Failure{Code: "declined"}
		}
		return w.plain(ctx, x, m)
	}})
	w.broker.Publish(w, msg("k", "o"))
	w.settled()
	again := w.letterToRedrive()
	w.broker.Publish(w, again, again, msg("behind", "o"))
	w.settled()
	if n := failed.Load(); n != 2 {
		w.Errorf("the handler failed %d times, want 2: at first, and once when the letter was sent back", n)
	}
	again = w.letterToRedrive()
	down.Store(false)
	w.broker.Publish(w, again, again, msg("last", "o"))
	w.settled()
	w.once([]consume.Message{msg("k", ""), msg("behind", ""), msg("last", "")})
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.order["o"]; !w.h.Unordered && (len(got) != 3 || got[1] != "k") {
		w.Errorf("the effects came in the order %q, want k before last", got)
	}
}

// letterToRedrive returns the dead letter of the latest failure, with the header that
// an operator adds.
func (w *world) letterToRedrive() (latest consume.Message) {
	w.Helper()
	highest := uint64(0)
	for _, c := range w.broker.Copies(w, driver.DeadLetter) {
		text, _ := c.Header(driver.LetterFence)
		if fence, err := strconv.ParseUint(text, 10, 64); err == nil && fence > highest {
			highest, latest = fence, c
		}
	}
	if highest == 0 {
		w.Fatal("no dead letter names the failure that it is about")
	}
	again := msg("k", "o")
	again.Body, again.Headers = latest.Body, append(slices.Clone(latest.Headers), store.Header{Name: consume.RedriveHeader, Value: "ann: the bank is back"})
	return again
}
