package pgoutbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A standby that lacks the last commits gives their positions to other messages. The results of the
// messages that are lost come after the fail-over, and must not end those.
func TestSettle_FailoverLostCommits_OtherMessagesAreKept(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, append([]string{"wal_level=replica", "max_wal_senders=4"}, pgtest.Fast...)...)
	before := openShop(t, primary.URL(), "semel")
	lanes, _, err := before.box.Lease(t.Context(), "p", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Remove(); err != nil {
			t.Error(err)
		}
	})
	standby.Kill() // it gets no more of the log
	lost, later := sameLane("lost", 3), sameLane("later", 3)
	before.put(t, lost...)
	taken, err := before.box.Take(t.Context(), lanes, nil, nil, 100)
	if err != nil || len(taken) != 3 {
		t.Fatalf("%d messages are taken, %v", len(taken), err)
	}
	primary.Kill()
	if err := standby.Start(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	after := openShop(t, standby.URL(), "semel")
	after.put(t, later...)
	take := func() (found []string) {
		t.Helper()
		waiting, err := after.box.Take(t.Context(), lanes, nil, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range waiting {
			found = append(found, fmt.Sprint(m.Position, " ", m.ID))
		}
		return found
	}
	want := take()
	for i, m := range taken {
		if at := fmt.Sprint(m.Position, " ", later[i].ID); !slices.Contains(want, at) {
			t.Fatalf("the standby has %q, and not the lost position %q: this test shows nothing", want, at)
		}
	}
	for _, r := range []outbox.Result{
		{Taken: &taken[0], Kind: outbox.Delivered},
		{Taken: &taken[1], Kind: outbox.Delivered, Keep: true},
		{Taken: &taken[2], Kind: outbox.Failed, Delay: time.Hour},
	} {
		if err := after.box.Settle(t.Context(), []outbox.Result{r}); err != nil {
			t.Fatal(err)
		}
		if found := take(); !slices.Equal(found, want) {
			t.Errorf("after the result %v (keep %v) of %s at position %d: %q wait, want %q", r.Kind, r.Keep, r.ID, r.Position, found, want)
		}
	}
	if s, err := after.box.Stats(t.Context()); err != nil || s.Waiting != 3 || s.Held != 0 {
		t.Errorf("%+v, %v; want 3 waiting messages, and none held", s, err)
	}
	if sent, err := after.box.List(t.Context(), outbox.Sent, 0, 10); err != nil || len(sent) != 0 {
		t.Errorf("%d messages count as sent, %v", len(sent), err)
	}
}

// sameLane makes n messages of lane 3, of different order keys.
func sameLane(name string, n int) (messages []outbox.Message) {
	for i := 0; len(messages) < n; i++ {
		if m := message(fmt.Sprint(name, i), 1); outbox.LaneOf(m.Order()) == 3 {
			messages = append(messages, m)
		}
	}
	return messages
}

// The same of messages that are held: another publisher has sent them without success meanwhile.
func TestSettle_HeldAtPositionOfOther_IsKept(t *testing.T) {
	p := newShop(t)
	p.put(t, message("k", 1))
	lanes, _, err := p.box.Lease(t.Context(), "p", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	take := func() outbox.Taken {
		t.Helper()
		taken, err := p.box.Take(t.Context(), lanes, nil, nil, 10)
		if err != nil || len(taken) != 1 {
			t.Fatalf("%d messages are taken, %v", len(taken), err)
		}
		return taken[0]
	}
	settle := func(r outbox.Result) {
		t.Helper()
		if err := p.box.Settle(t.Context(), []outbox.Result{r}); err != nil {
			t.Fatal(err)
		}
	}
	first := take()
	settle(outbox.Result{Taken: &first, Kind: outbox.Failed})
	now := take() // held
	lost := now   // an earlier message of the key, at the position
	lost.Written = lost.Written.Add(-time.Second)
	settle(outbox.Result{Taken: &lost, Kind: outbox.Delivered})
	settle(outbox.Result{Taken: &lost, Kind: outbox.Delivered, Keep: true})
	settle(outbox.Result{Taken: &lost, Kind: outbox.Refused})
	if m := take(); m.ID != "k-1" || m.Attempts != 1 {
		t.Errorf("took %s with %d attempts", m.ID, m.Attempts)
	}
	settle(outbox.Result{Taken: &now, Kind: outbox.Delivered})
	if s, err := p.box.Stats(t.Context()); err != nil || s.Held != 0 {
		t.Errorf("%+v, %v; want no held message", s, err)
	}
}
