package moved_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/moved"
	"github.com/semel-go/semel/store/shardstore"
)

func TestClaim_RecordInOldStore_IsReceived(t *testing.T) {
	to, from := stores()
	old := newService(t, from, semel.Retry)
	first, err := old.call("done")
	if err != nil {
		t.Fatal(err)
	}
	old.fail = semel.Final(errors.New("no funds"))
	if _, err := old.call("failed"); err == nil {
		t.Fatal("the failure is no error")
	}
	before := get(t, from, key("done"))

	s := newService(t, join(t, to, from), semel.Retry)
	if again, err := s.call("done"); err != nil || again != first {
		t.Errorf("the answer is %q, %v, want %q", again, err, first)
	}
	if _, err := s.call("failed"); err == nil || !strings.Contains(err.Error(), "no funds") {
		t.Errorf("the failure is %v", err)
	}
	if s.runs != 0 {
		t.Errorf("the handler ran %d times", s.runs)
	}
	if r := get(t, to, key("done")); r.Fence != before.Fence || r.Owner != before.Owner || !r.Expires.Equal(before.Expires) {
		t.Errorf("the new store has %+v, the old one %+v", r, before)
	}
	if after := get(t, from, key("done")); after.Fence != before.Fence || after.State != before.State {
		t.Errorf("the old store was changed: %+v", after)
	}
	if _, err := s.call("new"); err != nil || s.runs != 1 {
		t.Errorf("a new call: %d runs, %v", s.runs, err)
	}
	if _, err := from.Get(t.Context(), key("new")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a new call is in the old store: %v", err)
	}
}

func TestGet_RecordInOldStore_IsReceived(t *testing.T) {
	to, from := stores()
	st := join(t, to, from)
	for _, s := range states {
		r := put(t, from, key(s.String()), s)
		f, err := st.Get(t.Context(), r.Key)
		if err != nil || f.Won || f.Record.State != s || f.Record.Fence != r.Fence {
			t.Errorf("%v: %+v, %v", s, f, err)
		}
		if moved := get(t, to, r.Key); moved.Owner != r.Owner {
			t.Errorf("%v: the new store has the owner %v", s, moved.Owner)
		}
	}
	if _, err := st.Get(t.Context(), key("absent")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an absent record: %v", err)
	}
}

func TestClaim_InFlightInOldStore_IsNotRunTwice(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		to, from := stores()
		put(t, from, key("running"), store.Processing)
		s := newService(t, join(t, to, from), policy)
		if _, err := s.call("running"); !errors.Is(err, semel.ErrInProgress) || s.runs != 0 {
			t.Errorf("%v, while the lease lasts: %d runs, %v", policy, s.runs, err)
		}
		to.advance(2 * time.Hour)
		from.advance(2 * time.Hour)
		_, err := s.call("running")
		if parked := errors.Is(err, semel.ErrParked); parked != (policy == semel.Park) || s.runs > 0 == parked {
			t.Errorf("%v, after the lease: %d runs, %v", policy, s.runs, err)
		}
	}
}

func TestClaim_OldStoreDown_IsRefused(t *testing.T) {
	to, from := stores()
	put(t, from, key("done"), store.Completed)
	s := newService(t, join(t, to, down{from}), semel.Retry)
	if _, err := s.call("done"); !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, errDown) || s.runs != 0 {
		t.Errorf("%d runs, %v", s.runs, err)
	}
	if _, err := to.Get(t.Context(), key("done")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the new store has a record: %v", err)
	}
}

// refusing is a store that receives nothing.
type refusing struct{ *clocked }

func (refusing) Receive(context.Context, store.Record, []store.Step) (store.Found, error) {
	return store.Found{}, errDown
}

// The old store has shown the record, so this is no outage: the handler does not run without
// a record.
func TestClaim_NewStoreDoesNotTakeRecord_UnprotectedCallDoesNotRun(t *testing.T) {
	for _, state := range []store.State{store.Processing, store.Completed} {
		to, from := stores()
		put(t, from, key("k"), state)
		for name, st := range map[string]store.Store{
			"the new store takes no record":                 join(t, refusing{to}, from),
			"the new store answers no read":                 join(t, down{to}, from),
			"the steps of the old store are bad":            join(t, to, unreadable{clocked: from, key: key("k"), fault: errDown}),
			"the record changes, and the old store is down": join(t, to, &changing{unreadable: unreadable{clocked: from, key: key("k"), fault: store.ErrLeaseLost}}),
		} {
			g, err := semel.New(st, &semel.Options{UnprotectedOnOutage: true})
			if err != nil {
				t.Fatal(err)
			}
			s := &service{guard: g}
			if _, err := s.call("k"); !errors.Is(err, semel.ErrUnavailable) || s.runs != 0 {
				t.Errorf("%v in the old store, and %s: %d runs, %v; want ErrUnavailable", state, name, s.runs, err)
			}
			for method, ask := range map[string]func() (store.Found, error){
				"Get": func() (store.Found, error) { return st.Get(t.Context(), key("k")) },
				"Claim": func() (store.Found, error) {
					return st.Claim(t.Context(), store.Proposal{Key: key("k"), State: store.Processing, Owner: owner(9), Lease: time.Hour})
				},
			} {
				f, err := ask()
				if r := f.Record; err == nil || f.Won || r.Key != key("k") || r.State != state || !r.Outcome.Equal(store.Outcome{}) {
					t.Errorf("%v in the old store, and %s: %s shows a %v record of %q with the code %d, won %v, %v; want the record without its outcome", state, name, method, r.State, r.Key.Value, r.Outcome.Code, f.Won, err)
				}
			}
		}
		if _, err := to.Get(t.Context(), key("k")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v in the old store: the new store has %v", state, err)
		}
	}
}

// A duplicate of a record that is there already does not write.
func TestClaim_RecordIsInBothStores_NewStoreIsOnlyRead(t *testing.T) {
	to, from := stores()
	first, err := newService(t, from, semel.Retry).call("k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	s := newService(t, join(t, refusing{to}, from), semel.Retry)
	if again, err := s.call("k"); err != nil || again != first || s.runs != 0 {
		t.Errorf("%q, %d runs, %v; want %q", again, s.runs, err, first)
	}
}

func TestClaim_ExpiredInOldStore_IsNewCall(t *testing.T) {
	to, from := stores()
	put(t, from, key("old"), store.Completed)
	to.advance(2 * time.Hour)
	from.advance(2 * time.Hour)
	s := newService(t, join(t, to, from), semel.Retry)
	if _, err := s.call("old"); err != nil || s.runs != 1 {
		t.Errorf("%d runs, %v", s.runs, err)
	}
}

// The new store may have a copy of an earlier version.
func TestClaim_EarlierCopyInNewStore_OldStoreCounts(t *testing.T) {
	to, from := stores()
	old := newService(t, from, semel.Retry)
	old.fail = errors.New("timeout")
	if _, err := old.call("k"); err == nil {
		t.Fatal("the first attempt succeeded")
	}
	if _, err := moved.Copy(t.Context(), to, from, nil); err != nil {
		t.Fatal(err)
	}
	from.advance(time.Second)
	old.fail = nil
	first, err := old.call("k")
	if err != nil {
		t.Fatal(err)
	}
	to.advance(2 * time.Second)
	s := newService(t, join(t, to, from), semel.Retry)
	if again, err := s.call("k"); err != nil || again != first || s.runs != 0 {
		t.Errorf("%q, %d runs, %v; want %q", again, s.runs, err, first)
	}
}

func TestClaim_StepsInOldStore_DoNotRunAgain(t *testing.T) {
	to, from := stores()
	steps, attempts := 0, 0
	run := func(st store.Store) error {
		g, err := semel.New(st, &semel.Options{Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		call := semel.Call{Operation: "order", Tenant: "ann", Key: "k", Payload: semel.NoPayload()}
		_, err = semel.Do(t.Context(), g, call, func(ctx context.Context, x *semel.Execution) (string, error) {
			attempts++
			_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (int, error) {
				steps++
				return steps, nil
			})
			if err == nil && attempts == 1 {
				err = errors.New("the stock is down")
			}
			return "done", err
		})
		return err
	}
	if err := run(from); err == nil {
		t.Fatal("the first attempt succeeded")
	}
	if err := run(join(t, to, from)); err != nil || attempts != 2 || steps != 1 {
		t.Errorf("%d attempts, the step ran %d times, %v", attempts, steps, err)
	}
}

func TestNew_ClockBehind_FencesGrow(t *testing.T) {
	from := newClocked(time.Now().Add(50 * time.Millisecond).UnixMicro())
	swept := put(t, from, key("k"), store.Completed)
	from.advance(20 * time.Millisecond)
	st := join(t, newClockedRunning(), from)
	f, err := st.Claim(t.Context(), store.Proposal{Key: key("swept"), State: store.Processing, Owner: owner(9), Lease: time.Hour})
	if err != nil || f.Record.Fence <= swept.Fence || f.Record.Fence < uint64(from.micros.Load()) {
		t.Errorf("a claim in the new store has fence %d; the old store was at %d, %v", f.Record.Fence, from.micros.Load(), err)
	}
}

// The clocks of shards may differ. Here the fast shard is ahead of the new store.
func TestNew_OldStoreHasShards_WaitsForFastestClock(t *testing.T) {
	now := time.Now()
	slow, fast := newClocked(now.UnixMicro()), newClocked(now.Add(2*moved.MaxClockWait).UnixMicro())
	from, err := shardstore.New([]shardstore.Shard{{Name: "a", Store: slow}, {Name: "b", Store: fast}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moved.New(t.Context(), newClocked(now.UnixMicro()), from); err == nil || !strings.Contains(err.Error(), "2m0s behind") {
		t.Errorf("one shard of the old store is far ahead: %v", err)
	}
}

// The slowest clock of the new store gives its keys the lowest fences.
func TestNew_NewStoreHasShards_WaitsForSlowestClock(t *testing.T) {
	now := time.Now()
	from := newClocked(now.UnixMicro())
	slow, fast := newClocked(now.Add(-2*moved.MaxClockWait).UnixMicro()), newClocked(now.Add(time.Hour).UnixMicro())
	to, err := shardstore.New([]shardstore.Shard{{Name: "a", Store: slow}, {Name: "b", Store: fast}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := moved.New(t.Context(), to, from); err == nil || !strings.Contains(err.Error(), "2m0s behind") {
		t.Errorf("one shard of the new store is far behind: %v", err)
	}
}

func TestNew_ClockFarBehind_IsError(t *testing.T) {
	to, from := newClocked(noon), newClocked(noon+2*moved.MaxClockWait.Microseconds())
	_, err := moved.New(t.Context(), to, from)
	if err == nil || !strings.Contains(err.Error(), "2m0s behind") || !strings.Contains(err.Error(), "1m0s") {
		t.Errorf("%v", err)
	}
}

func TestNew_UnfitStore_IsError(t *testing.T) {
	to, from := stores()
	bare := struct{ store.Store }{to}
	for what, c := range map[string]struct {
		to, from store.Store
		want     string
	}{
		"no new store":         {nil, from, "nil"},
		"no old store":         {to, nil, "nil"},
		"cannot receive":       {bare, from, "store.Receiver"},
		"an old without clock": {to, struct{ store.Store }{from}, "store.Timers"},
	} {
		if _, err := moved.New(t.Context(), c.to, c.from); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
