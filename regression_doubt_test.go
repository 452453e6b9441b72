package semel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/jsontext"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Bugs that were found by reading: what must not run again, or must not look
// like something else.

func TestNestedNoEffectDoesNotReleaseTheParkedParent(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	effects := 0
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		effects++ // charge
		err := semel.Once(ctx, g, x.Step("mail"), func(context.Context, *semel.Execution) error {
			return semel.NoEffect(errors.New("smtp refused"))
		})
		if err != nil {
			return store.Outcome{}, fmt.Errorf("mail: %w", err)
		}
		return store.Outcome{}, nil
	}
	_, _ = g.Run(t.Context(), ann("k"), h)
	_, _ = g.Run(t.Context(), ann("k"), h)
	if effects != 1 {
		t.Errorf("%d effects under Park", effects)
	}
}

func TestJoinedNoEffectIsDoubt(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.Join(errors.New("charge: timeout"), semel.NoEffect(errors.New("mail: refused")))))
	wantState(t, g, "k", store.Unknown)
}

func TestUnprotectedDoesNotRunAParkedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Park, "k", time.Second)
		time.Sleep(time.Second)
		h := &hooks{Store: st, swap: func(context.Context, store.Seen, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, h, &semel.Options{UnprotectedOnOutage: true})
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
	})
}

func TestUnprotectedDoesNotRunBesideAKnownRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Minute) // alive
		h := &hooks{Store: st, get: func(context.Context, store.Key) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, h, &semel.Options{UnprotectedOnOutage: true})
		_, err := g.Run(t.Context(), waiting("k", 5*time.Second), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
	})
}

func TestUnprotectedDoesNotRunOnACorruptRecord(t *testing.T) {
	mad := &hooks{Store: memstore.New(nil), claim: func(_ context.Context, p store.Proposal) (store.Found, error) {
		return store.Found{Record: store.Record{Key: p.Key, State: 99}, Now: time.Now()}, nil
	}}
	g := guard(t, mad, &semel.Options{UnprotectedOnOutage: true})
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, store.ErrCorrupt)
}

func TestUnprotectedCoversAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := &hooks{Store: memstore.New(nil), claim: func(ctx context.Context, _ store.Proposal) (store.Found, error) {
			<-ctx.Done()
			return store.Found{}, ctx.Err()
		}}
		g := guard(t, hang, &semel.Options{UnprotectedOnOutage: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		res, err := g.Run(ctx, ann("k"), answer("bare"))
		time.Sleep(time.Minute)
		wantBody(t, res, err, "bare", false)
	})
}

func TestTwoIntegersNeverHaveOneCanonicalForm(t *testing.T) {
	a, _ := jsontext.Canonical([]byte(`{"account":1152921504606846976}`))
	b, _ := jsontext.Canonical([]byte(`{"account":1152921504606847000}`))
	if string(a) == string(b) {
		t.Errorf("both are %s", a)
	}
	c, _ := jsontext.Canonical([]byte(`1000000000000000000000`))
	d, _ := jsontext.Canonical([]byte(`1e21`))
	if string(c) != string(d) || string(c) != "1e+21" {
		t.Errorf("%s and %s", c, d)
	}
}

func TestALeaseWithoutAnEndIsCorruptNotLapsed(t *testing.T) {
	for _, s := range []store.State{store.Processing, store.Started} {
		r := store.Record{Key: store.Key{Operation: "o", Value: "k"}, State: s, Fence: 1, Owner: store.Owner{1}, Format: 1}
		if d := store.Decide(&r, &store.Call{}, time.Now()); d.Action != store.Corrupt {
			t.Errorf("%v without Until: %v", s, d.Action)
		}
	}
}

func TestAForeignRecordIsNotReplayed(t *testing.T) {
	st := memstore.New(nil)
	torn := &hooks{Store: st}
	torn.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		p.Key.Tenant = "bob"
		return st.Claim(ctx, p) // a desynchronised connection answers somebody else's question
	}
	_, err := guard(t, st, nil).Run(t.Context(), semel.Call{Operation: pay, Tenant: "bob", Key: "k", Payload: semel.NoPayload()}, answer("bob's"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := guard(t, torn, nil).Run(t.Context(), ann("k"), never(t))
	if err == nil {
		t.Errorf("ann got %q", res.Body)
	}
}

func TestAnOperatorsNoLetsTheNextCallExecute(t *testing.T) {
	st := memstore.New(nil)
	for name, r := range map[string]func(context.Context, *semel.Execution) (semel.Verdict, error){"reconciler": says(semel.DidNotHappen(), nil), "operator": nil} {
		g := guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1, Reconcile: r})
		_, _ = g.Run(t.Context(), ann(name), fail(errBoom))
		if r == nil {
			if err := g.Resolve(t.Context(), record(t, g, name), semel.DidNotHappen()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := g.Run(t.Context(), ann(name), answer("second"))
		if r == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if exhausted := (&semel.Failure{Code: semel.CodeAttemptsExhausted}); r != nil && !errors.Is(err, exhausted) {
			t.Errorf("%s: %v", name, err) // known not to have happened, and no attempt left: it ends
		}
	}
}

func TestLeaseLostDoesNotLookLikeAKeptFailure(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	h := &hooks{Store: memstore.New(nil), settle: func(context.Context, store.Lease, store.Settlement) error { return store.ErrLeaseLost }}
	_, err := guard(t, h, nil).Run(t.Context(), ann("k"), fail(declined))
	wantErr(t, err, semel.ErrLeaseLost)
	if errors.Is(err, declined) {
		t.Error("errors.Is says that the failure is kept")
	}
}

func TestAParkedCallDoesNotLookLikeAKeptFailure(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	g := parking(t, memstore.New(nil), says(semel.Verdict{}, declined))
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	if errors.Is(err, declined) {
		t.Error("errors.Is says that the failure is kept")
	}
}

func TestAHandlersOwnErrOutcomeNotStored(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	inner := &semel.Error{Reason: semel.ErrOutcomeNotStored}
	_, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (int, error) { return 0, inner })
	if err != error(inner) {
		t.Errorf("the handler's error came back as %v", err)
	}
}

func TestALargeFailureKeepsItsCode(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	declined := &semel.Failure{Code: "declined", Data: make([]byte, 900_000)}
	_, err := g.Run(t.Context(), ann("k"), fail(declined))
	wantErr(t, err, &semel.Failure{Code: "declined"})
	_, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, &semel.Failure{Code: "declined"})
}

func TestLastErrorIsTextThatDatabasesTake(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), fail(errors.New("bad \x00 and \xff "+strings.Repeat("ü", 600))))
	r := record(t, g, "k")
	if !utf8.ValidString(r.LastError) || strings.Contains(r.LastError, "\x00") {
		t.Errorf("LastError is %q", r.LastError)
	}
	if len(r.LastError) > 510 {
		t.Errorf("LastError has %d bytes", len(r.LastError))
	}
}

func TestDoubtUnderRetryIsNotRunAgainByPark(t *testing.T) {
	st := memstore.New(nil)
	_, _ = guard(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom)) // timeout after the effect
	_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), answer("again"))
	wantErr(t, err, semel.ErrParked)
}

// Who has to find out whether a parked call took effect goes by what the record
// says of it.
func TestWhatIsParkedOrExhaustedSaysWhatHappened(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	_, _ = guard(t, st, nil).Run(t.Context(), ann("failed"), fail(errBoom))
	if f, err := st.Claim(t.Context(), store.Proposal{ // by a process that dies
		Key: store.Key{Operation: string(pay), Tenant: "ann", Value: "died"}, State: store.Processing, Owner: store.Owner{1}, Holder: "host/1",
		Attempt: 1, Lease: time.Second, Error: "boom",
	}); err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	now = now.Add(time.Minute)
	for _, c := range []struct {
		name, key, says, not string
		o                    semel.Options
	}{
		{"a failed attempt, parked", "failed", "boom", "lapsed", semel.Options{OnDoubt: semel.Park}},
		{"a dead one, and none is left", "died", "host/1 died", "boom", semel.Options{MaxAttempts: 1}},
	} {
		_, err := guard(t, st, &c.o).Run(t.Context(), ann(c.key), never(t))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: the caller is told %v", c.name, err)
		}
		if is := record(t, guard(t, st, nil), c.key).LastError; !strings.Contains(is, c.says) || strings.Contains(is, c.not) {
			t.Errorf("%s: the record says %q", c.name, is)
		}
	}
}

// A reservation made after the doubt does not answer it.
func TestAReservationDoesNotHideDoubtFromPark(t *testing.T) {
	st := memstore.New(nil)
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	_, _ = retry.Run(t.Context(), ann("k"), fail(errBoom)) // timeout after the effect
	ticket, err := retry.Reserve(t.Context(), ann("k"))
	if err != nil {
		t.Fatal(err)
	}
	call, err := park.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	_, err = park.Run(t.Context(), call, never(t))
	wantErr(t, err, semel.ErrParked)
	if r := record(t, park, "k"); r.State != store.Unknown {
		t.Errorf("the record is %v", r.State)
	}
}

// The outcome of a rerun's call is kept whatever becomes of its reruns.
func TestASweepDoesNotEndTheRerunsOfACall(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	g := guard(t, st, &semel.Options{Rerun: true, MaxAttempts: 1})
	if _, err := g.Run(t.Context(), ann("k"), answer("one")); err != nil {
		t.Fatal(err)
	}
	sibling := pay + "##rerun"
	f, err := st.Claim(t.Context(), store.Proposal{ // a process that dies in the middle of a rerun
		Key: store.Key{Operation: string(sibling), Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second,
	})
	if err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	now = now.Add(time.Minute)
	if stats, err := sweep.Once(t.Context(), st, &sweep.Options{MaxAttempts: 1}); err != nil || stats.Released != 1 {
		t.Fatalf("%+v, %v", stats, err)
	}
	res, err := g.Run(t.Context(), ann("k"), answer("two"))
	wantBody(t, res, err, "two", false)
}

func TestAppendingToAReplayedBodyIsHarmless(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), answer("12345"))
	a, _ := g.Run(t.Context(), ann("k"), never(t))
	b, _ := g.Run(t.Context(), ann("k"), never(t))
	x := append(a.Body, 'x')
	_ = append(b.Body, 'y')
	if string(x) != "12345x" {
		t.Errorf("got %q", x)
	}
}

func TestErrorsHoldNoPayload(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.JSON(json.RawMessage([]byte(`{"card":4111111111111111e999}`)))}, never(t))
	if strings.Contains(err.Error(), "4111") {
		t.Error(err)
	}
}

func TestNoEffectOfAFailureRunsAgain(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), fail(semel.NoEffect(&semel.Failure{Code: "x"})))
	res, err := g.Run(t.Context(), ann("k"), answer("again"))
	wantBody(t, res, err, "again", false)
}

func TestTypedNilFailure(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panicked: %v; the record is %v", p, record(t, g, "k").State)
		}
	}()
	var f *semel.Failure
	_, _ = g.Run(t.Context(), ann("k"), fail(f))
}

func TestHugeBackoff(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Backoff: func(int) time.Duration { return math.MaxInt64 }})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	r := record(t, g, "k")
	if time.Until(r.Until) > 101*365*24*time.Hour {
		t.Errorf("locked until %v", r.Until)
	}
}

func TestFieldsThatAreAllAbsent(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.Fields([]byte(`{"items":[{"id":1}]}`), "items.0.id")}, answer("one"))
	if err != nil {
		return
	}
	_, err = g.Run(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.Fields([]byte(`{"items":[{"id":2}]}`), "items.0.id")}, never(t))
	if err == nil {
		t.Error("another payload got the first one's answer")
	}
}
