package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// poll is a batch of calls, one for each key.
func poll(keys ...string) []semel.Call {
	calls := make([]semel.Call, len(keys))
	for i, k := range keys {
		calls[i] = call(k)
	}
	return calls
}

// numbered are n keys.
func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return keys
}

// worker counts how often its handlers ran, by key.
type worker struct {
	p    *shop
	runs map[string]int
	fail map[string]error // errors that the handler returns after its writes
}

func newWorker(p *shop) *worker { return &worker{p, map[string]int{}, map[string]error{}} }

// runAll runs a batch with one handler, whose effect is one statement. If one call
// fails, the handler fails.
func (w *worker) runAll(ctx context.Context, calls []semel.Call) []BatchResult {
	return w.p.a.RunBatch(ctx, calls, func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		var keys []string
		for _, f := range newCalls {
			key := f.Execution.Key()
			w.runs[key]++
			keys = append(keys, key)
			f.Outcome = store.Outcome{Code: 201, Body: []byte("receipt of " + key)}
		}
		if _, err := tx.Exec(ctx, "INSERT INTO "+w.p.table+" SELECT unnest($1::text[])", keys); err != nil {
			return err
		}
		for _, key := range keys {
			if err := w.fail[key]; err != nil {
				return err
			}
		}
		return nil
	})
}

// wantEnds compares how a batch ended: "" for work done, "replayed", or what
// the error says.
func wantEnds(t *testing.T, calls []semel.Call, got []BatchResult, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d ends of %d calls", len(got), len(want))
	}
	for i, e := range got {
		key := calls[i].Key
		switch want[i] {
		case "", "replayed":
			if e.Err != nil || e.Replayed != (want[i] == "replayed") || string(e.Body) != "receipt of "+key || e.Code != 201 {
				t.Errorf("call %d, key %q: %q, replayed %v, error %v; want %q", i, key, e.Body, e.Replayed, e.Err, want[i])
			}
		default:
			if e.Err == nil || !strings.Contains(e.Err.Error(), want[i]) {
				t.Errorf("call %d, key %q: error %v, want %q", i, key, e.Err, want[i])
			}
		}
	}
}

func repeated(what string, n int) []string { return slices.Repeat([]string{what}, n) }

func TestRunBatch_CallsRepeated_EffectsOnce(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	keys := numbered("k", 50)
	calls := poll(keys...)
	wantEnds(t, calls, run(t.Context(), calls), repeated("", 50)...)
	wantEnds(t, calls, run(t.Context(), calls), repeated("replayed", 50)...)
	w.p.want(t, keys...)
	for _, k := range keys {
		if w.runs[k] != 1 {
			t.Errorf("the handler of %q ran %d times", k, w.runs[k])
		}
	}
	r, err := w.p.record(t, "k007")
	if err != nil || r.State != store.Completed || r.Attempt != 1 || string(r.Outcome.Body) != "receipt of k007" || r.Fence == 0 || r.Completed.IsZero() || !r.Until.IsZero() || r.Expires.Sub(r.Completed) < time.Hour {
		t.Errorf("a record is %+v, error %v", r, err)
	}
	half := poll("k001", "n1", "k002", "n2")
	wantEnds(t, half, run(t.Context(), half), "replayed", "", "replayed", "")
	if got, err := Do(t.Context(), w.p.a, call("n1"), w.p.pay("n1", nil)); err == nil {
		t.Errorf("an outcome without a codec was decoded: %q", got)
	}
}

func TestRunBatch_Empty_DoesNothing(t *testing.T) {
	t.Parallel()
	run := newWorker(newShop(t, openNew(t, nil), nil)).runAll
	if got := run(t.Context(), nil); len(got) != 0 {
		t.Errorf("%d ends", len(got))
	}
}

// The batch is what Run and Guard make of each call, by the same code.
func TestRunBatch_InvalidCalls_RefusedAsByRun(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	other := func(n int) semel.Call {
		return semel.Call{Operation: "pay", Tenant: "ann", Key: "other", Payload: semel.JSON(n)}
	}
	declined := &semel.Failure{Code: "declined", Message: "no money"}
	if _, err := Do(t.Context(), w.p.a, call("failed"), w.p.pay("failed", declined)); !errors.Is(err, declined) {
		t.Fatal(err)
	}
	if err := Once(t.Context(), w.p.a, other(1), nothing); err != nil {
		t.Fatal(err)
	}
	g, err := semel.New(w.p.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := g.Reserve(t.Context(), call("reserved"))
	if err != nil {
		t.Fatal(err)
	}
	redeemed, err := g.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	calls := []semel.Call{call("a"), call("failed"), other(2), {}, call(""), call("reserved"), call("b")}
	ends := run(t.Context(), calls)
	wantEnds(t, calls, ends, "", "no money", "another payload", "operation: is empty", "key", "in progress", "")
	if !errors.Is(ends[2].Err, semel.ErrMismatch) || !errors.Is(ends[3].Err, semel.ErrInvalid) || !errors.Is(ends[1].Err, declined) {
		t.Errorf("%v, %v, %v", ends[1].Err, ends[2].Err, ends[3].Err)
	}
	wantEnds(t, []semel.Call{redeemed}, run(t.Context(), []semel.Call{redeemed}), "")
	w.p.want(t, "a", "b", "reserved")
}

func TestRunBatch_KeyTwice_SecondReplayed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	calls := poll("a", "b", "a", "c", "b", "a")
	wantEnds(t, calls, run(t.Context(), calls), "", "", "replayed", "", "replayed", "replayed")
	w.p.want(t, "a", "b", "c")
	other := []semel.Call{{Operation: "pay", Tenant: "ann", Key: "d", Payload: semel.JSON("y")}, {Operation: "pay", Tenant: "ann", Key: "d", Payload: semel.JSON("x")}}
	wantEnds(t, other, run(t.Context(), other), "", "another payload")
}

// One that waited for a failed attempt gets the failure, not the right to run.
func TestRunBatch_KeyTwiceAndFails_SecondDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	w.fail["bad"], w.fail["no"] = errors.New("poison"), &semel.Failure{Message: "declined"}
	calls := poll("bad", "a", "bad", "no", "b", "no")
	ends := run(t.Context(), calls)
	wantEnds(t, calls, ends, "poison", "", "waited for failed", "declined", "", "declined")
	if r, err := w.p.record(t, "bad"); err != nil || r.Attempt != 1 {
		t.Errorf("%d attempts, error %v", r.Attempt, err)
	}
	w.p.want(t, "a", "b")
}

func TestRunBatch_DuplicateInFlight_OthersSucceed(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	run := w.runAll
	tx := beginTx(t, w.p.s, txDefaults)
	if err := semel.Once(t.Context(), w.p.a.In(tx), call("hot"), func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	calls := poll("a", "hot", "b")
	ends := run(t.Context(), calls)
	wantEnds(t, calls, ends, "", "in progress", "")
	if e, ok := errors.AsType[*semel.Error](ends[1].Err); !ok || !errors.Is(e, semel.ErrInProgress) || e.RetryAfter <= 0 {
		t.Errorf("the one in flight: %v, want ErrInProgress with a time", ends[1].Err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEnds(t, calls, run(t.Context(), calls), "replayed", "", "replayed")
	w.p.want(t, "a", "b", "hot")
}

// A leased call takes no advisory lock: the unique index decides, and the batch
// runs again.
func TestRunBatch_LosesKeyToLeasedCall_RunsAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	g, err := semel.New(p.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	stolen := false
	calls := poll("a", "k", "b")
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		if !stolen {
			stolen = true
			if _, err := semel.Do(ctx, g, call("k"), func(context.Context, *semel.Execution) (string, error) { return "leased", nil }); err != nil {
				t.Error(err)
			}
		}
		for _, f := range newCalls {
			if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if ends[0].Err != nil || ends[1].Err != nil || !ends[1].Replayed || ends[2].Err != nil {
		t.Errorf("%+v", ends)
	}
	p.want(t, "a", "b")
}

func TestRunBatch_KeyExpired_RunsAgain(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openFixedClock(t), nil))
	calls := poll("a", "b")
	for range 3 {
		wantEnds(t, calls, w.runAll(t.Context(), calls), "", "")
		advance(t, w.p.s, 25*time.Hour)
	}
	w.p.want(t, "a", "a", "a", "b", "b", "b")
	w.fail["a"] = &semel.Failure{Message: "declined"} // the replaced record is restored too
	wantEnds(t, calls, w.runAll(t.Context(), calls), "declined", "")
	if r, err := w.p.record(t, "a"); err != nil || r.State != store.Failed {
		t.Errorf("the record is %v, error %v", r.State, err)
	}
	advance(t, w.p.s, 25*time.Hour)
	w.fail["a"] = errors.New("poison")
	wantEnds(t, calls, w.runAll(t.Context(), calls), "poison", "")
	if r, err := w.p.record(t, "a"); err != nil || r.State != store.Released || r.Attempt != 1 {
		t.Errorf("the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
}

func TestRunBatch_InsideAHandler_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	if err := Once(t.Context(), w.p.a, call("outer"), func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
		for _, e := range w.runAll(ctx, poll("a", "b")) {
			if !errors.Is(e.Err, semel.ErrUnavailable) {
				t.Errorf("RunBatch in a handler: %v", e.Err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	w.p.want(t)
}

func TestRunBatch_MoreThanLimit_SeveralTransactions(t *testing.T) {
	t.Parallel()
	w := newWorker(newShop(t, openNew(t, nil), nil))
	calls := poll(numbered("k", 2*maxTogether+1)...)
	for i, e := range w.runAll(t.Context(), calls) {
		if e.Err != nil {
			t.Fatalf("call %d: %v", i, e.Err)
		}
	}
	if n := len(w.p.payments(t)); n != len(calls) {
		t.Errorf("%d effects of %d", n, len(calls))
	}
}
