package semellambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func orders(pointers ...string) semellambda.Options[order] {
	return semellambda.Options[order]{Operation: "charge", Tenant: semellambda.Shared[order], KeyPointers: pointers}
}

func TestWrap_Duplicate_GetsFirstResult(t *testing.T) {
	runs := 0
	h := must[func(context.Context, json.RawMessage) (int, error)](t)(semellambda.Wrap(newGuard(t, nil, nil), orders("/id"), func(ctx context.Context, o order) (int, error) {
		if x, ok := semel.FromContext(ctx); !ok || x.Key() != o.ID {
			t.Error("the handler's context has no execution with the key")
		}
		runs++
		return o.Cents + runs, nil
	}))
	for range 3 {
		got, err := h(t.Context(), json.RawMessage(`{"id":"a","cents":10}`))
		if err != nil || got != 11 {
			t.Errorf("got %d, %v; want the first result, 11", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("the handler ran %d times", runs)
	}
	_, err := h(t.Context(), json.RawMessage(`{"id":"a","cents":11}`))
	wantErr(t, err, semel.ErrMismatch)
}

func TestWrap_Keys_ByPointer(t *testing.T) {
	for _, c := range []struct{ pointers, event, key string }{
		{"/id", `{"id":"a"}`, "a"},
		{"/detail/items/1", `{"detail":{"items":["x","y"]}}`, "y"},
		{"/n", `{"n": 9007199254740993 }`, "9007199254740993"},
		{"/n", `{"n":-7}`, "-7"},
		{"/a~1b/m~0n", `{"a/b":{"m~n":"slash"}}`, "slash"},
		{"", `"whole"`, "whole"},
		{"/", `{"":"empty name"}`, "empty name"},
		{"/a /b", `{"a":"x","b":2}`, `["x","2"]`},
		{"/id", `{}`, ""},
		{"/id", `{"id":null}`, ""},
		{"/id", `{"id":""}`, ""},
		{"/id", `{"id":1.0}`, ""},
		{"/id", `{"id":1e3}`, ""},
		{"/id", `{"id":true}`, ""},
		{"/id", `{"id":["a"]}`, ""},
		{"/items/01", `{"items":["x","y"]}`, ""},
		{"/items/-", `{"items":["x","y"]}`, ""},
		{"/items/2", `{"items":["x","y"]}`, ""},
		{"/a /b", `{"a":"x"}`, ""},
	} {
		o := semellambda.Options[any]{Operation: "op", Tenant: semellambda.Shared[any], KeyPointers: strings.Split(c.pointers, " ")}
		h := must[func(context.Context, json.RawMessage) (string, error)](t)(semellambda.Wrap(newGuard(t, nil, nil), o, func(ctx context.Context, _ any) (string, error) {
			x, _ := semel.FromContext(ctx)
			return x.Key(), nil
		}))
		key, err := h(t.Context(), json.RawMessage(c.event))
		if key != c.key || (c.key == "") != errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s of %s: the key is %q, %v; want %q", c.pointers, c.event, key, err, c.key)
		}
	}
}

// The chosen fields are compared in each state of the record: Powertools skipped the
// comparison while the first call ran (powertools-lambda-typescript#2058).
func TestWrap_OtherPayload_RefusedInEveryState(t *testing.T) {
	o := orders("/id")
	o.PayloadPointers = []string{"/cents", "/currency"}
	g := newGuard(t, nil, nil)
	var h func(context.Context, json.RawMessage) (string, error)
	inside := 0
	h = must[func(context.Context, json.RawMessage) (string, error)](t)(semellambda.Wrap(g, o, func(ctx context.Context, _ order) (string, error) {
		if inside++; inside > 1 {
			t.Error("the handler ran for another payload")
			return "", nil
		}
		_, err := h(t.Context(), json.RawMessage(`{"id":"a","cents":2}`))
		wantErr(t, err, semel.ErrMismatch)
		_, err = h(t.Context(), json.RawMessage(`{"id":"a","cents":1,"sent":"later"}`))
		wantErr(t, err, semel.ErrInProgress)
		return "done", nil
	}))
	if _, err := h(t.Context(), json.RawMessage(`{"id":"a","cents":1,"sent":"first"}`)); err != nil {
		t.Fatal(err)
	}
	_, err := h(t.Context(), json.RawMessage(`{"id":"a","cents":2}`))
	wantErr(t, err, semel.ErrMismatch)
	_, err = h(t.Context(), json.RawMessage(`{"id":"a","cents":1,"currency":"EUR"}`))
	wantErr(t, err, semel.ErrMismatch)
	if got, err := h(t.Context(), json.RawMessage(`{"sent":"again","cents":1,"id":"a"}`)); got != "done" || err != nil {
		t.Errorf("a duplicate with other fields that are not compared got %q, %v", got, err)
	}
	_, err = h(t.Context(), json.RawMessage(`{"id":"b"}`))
	wantErr(t, err, semel.ErrInvalid)
}

// A time-out must not leave an orphan: Powertools left a record in progress that
// nothing ended, or one without an end (powertools-lambda-python#4759).
func TestWrap_HandlerIgnoresTimeout_KeyIsFreeAtOnce(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			wrap := func(sleep time.Duration) func(context.Context, json.RawMessage) (string, error) {
				g := newGuard(t, st, &semel.Options{OnDoubt: policy})
				return must[func(context.Context, json.RawMessage) (string, error)](t)(semellambda.Wrap(g, orders("/id"), func(context.Context, order) (string, error) {
					time.Sleep(sleep)
					return "done", nil
				}))
			}
			// The process is killed after 3 s; a goroutine that never settles stands for it.
			killed, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			go func() { _, _ = wrap(time.Hour)(killed, json.RawMessage(`{"id":"a"}`)) }()
			next := wrap(0)
			time.Sleep(2900 * time.Millisecond)
			_, err := next(t.Context(), json.RawMessage(`{"id":"a"}`))
			wantErr(t, err, semel.ErrInProgress)
			time.Sleep(101 * time.Millisecond)
			got, err := next(t.Context(), json.RawMessage(`{"id":"a"}`))
			if policy == semel.Park {
				wantErr(t, err, semel.ErrParked)
			} else if got != "done" || err != nil {
				t.Errorf("after the time-out: %q, %v", got, err)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// A handler that obeys its context is settled before Lambda stops the process.
func TestWrap_HandlerObeysContext_IsSettledBeforeTimeout(t *testing.T) {
	for _, c := range []struct{ timeout, reserve time.Duration }{{time.Second, 100 * time.Millisecond}, {time.Minute, 500 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			g, start := newGuard(t, nil, nil), time.Now()
			h := must[func(context.Context, json.RawMessage) (string, error)](t)(semellambda.Wrap(g, orders("/id"), func(ctx context.Context, _ order) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}))
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			defer cancel()
			_, err := h(ctx, json.RawMessage(`{"id":"a"}`))
			wantErr(t, err, context.DeadlineExceeded)
			if took := time.Since(start); took != c.timeout-c.reserve {
				t.Errorf("settled after %v of %v; want %v to be left", took, c.timeout, c.reserve)
			}
			r, err := g.Get(t.Context(), semel.Call{Operation: "charge", Tenant: semel.Shared, Key: "a"})
			if err != nil || r.State != store.Released {
				t.Errorf("the record is %v, %v; want released", r.State, err)
			}
		})
	}
}

func TestWrap_WrongOptions_Refused(t *testing.T) {
	g := newGuard(t, nil, nil)
	fn := func(context.Context, order) (int, error) { return 0, nil }
	for want, o := range map[string]semellambda.Options[order]{
		"Options.Operation":       {Tenant: semellambda.Shared[order], KeyPointers: []string{"/id"}},
		"Options.Tenant":          {Operation: "op", KeyPointers: []string{"/id"}},
		"set Key or KeyPointers,": {Operation: "op", Tenant: semellambda.Shared[order]},
		`"id": must be empty or`:  orders("id"),
		`'~' must be written`:     orders("/a~2"),
		"not both":                {Operation: "op", Tenant: semellambda.Shared[order], KeyPointers: []string{"/id"}, Key: semellambda.Shared[order]},
		"PayloadPointers: is empty": {
			Operation: "op", Tenant: semellambda.Shared[order], KeyPointers: []string{"/id"}, PayloadPointers: []string{},
		},
	} {
		if _, err := semellambda.Wrap(g, o, fn); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v; want %q in it", err, want)
		}
	}
	if _, err := semellambda.Wrap[order, int](nil, orders("/id"), nil); err == nil {
		t.Error("neither a runner nor a handler, and no error")
	}
}

type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }

// Lambda's runtime reads the error, and a nil pointer in it must not end the process.
func TestWrap_KeyErrorIsNilPointer_IsReadable(t *testing.T) {
	o := orders()
	o.KeyPointers = nil
	o.Key = func(order) (string, error) { return "", (*nilPointerError)(nil) }
	h := must[func(context.Context, json.RawMessage) (int, error)](t)(semellambda.Wrap(newGuard(t, nil, nil), o, func(context.Context, order) (int, error) { return 0, nil }))
	_, err := h(t.Context(), json.RawMessage(`{"id":"a"}`))
	wantErr(t, err, semel.ErrInvalid)
	if err.Error() == "" {
		t.Error("the error has no text")
	}
}

func TestWrap_TenantUnavailable_IsOutage(t *testing.T) {
	o := orders("/id")
	o.Tenant = func(order) (string, error) { return "", semel.ErrUnavailable }
	h := must[func(context.Context, json.RawMessage) (int, error)](t)(semellambda.Wrap(newGuard(t, nil, nil), o, func(context.Context, order) (int, error) { return 0, nil }))
	_, err := h(t.Context(), json.RawMessage(`{"id":"a"}`))
	wantErr(t, err, semel.ErrUnavailable)
	_, err = h(t.Context(), json.RawMessage(`[`))
	wantErr(t, err, semel.ErrInvalid)
}
