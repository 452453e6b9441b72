package semel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestRun_Duplicate_GetsSameBytes(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	first := store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: "/1"}, {Name: "Location", Value: "/2"}}, Body: []byte{0, 1, 2, 0xff}}
	res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) { return first, nil })
	if err != nil || res.Replayed || !res.Outcome.Equal(first) {
		t.Fatalf("the first call got %+v, %v; want %+v", res, err, first)
	}
	for range 3 {
		res, err := g.Run(t.Context(), ann("k"), never(t))
		if err != nil || !res.Replayed || !res.Outcome.Equal(first) {
			t.Fatalf("the duplicate got %+v, %v; want %+v", res, err, first)
		}
	}
}

// Each kind of error that a handler can return, under both policies.
func TestRun_HandlerReturns_DecidesState(t *testing.T) {
	declined := &semel.Failure{Code: "declined", Message: "the card was declined"}
	for _, c := range []struct {
		name        string
		err         error
		retry, park store.State
		attempt     int
		first, next error // the errors of the first caller and of the duplicate
	}{
		{"a failure is kept", fmt.Errorf("psp: %w", declined), store.Failed, store.Failed, 1, declined, declined},
		{"Final is kept", semel.Final(errBoom), store.Failed, store.Failed, 1, &semel.Failure{Message: "boom"}, nil},
		{"NoEffect gives the attempt back", semel.NoEffect(errBoom), store.Released, store.Released, 0, errBoom, nil},
		{"a plain error is doubt", errBoom, store.Released, store.Unknown, 1, errBoom, nil},
		{"an error of the context is doubt", context.Canceled, store.Released, store.Unknown, 1, context.Canceled, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for policy, want := range map[semel.Policy]store.State{semel.Retry: c.retry, semel.Park: c.park} {
				g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy})
				_, err := g.Run(t.Context(), ann("k"), fail(c.err))
				if c.first != nil && !errors.Is(err, c.first) && err.Error() != c.first.Error() {
					t.Errorf("%v: the caller got %v, want %v", policy, err, c.first)
				}
				r := wantState(t, g, "k", want)
				if r.Attempt != c.attempt {
					t.Errorf("%v: attempt %d, want %d", policy, r.Attempt, c.attempt)
				}
				switch _, err := g.Run(t.Context(), ann("k"), answer("second")); want {
				case store.Unknown:
					wantErr(t, err, semel.ErrParked)
				case store.Failed:
					if f, ok := errors.AsType[*semel.Failure](err); !ok || c.next != nil && !errors.Is(f, c.next) {
						t.Errorf("%v: the duplicate got %v, want the kept failure", policy, err)
					}
				default:
					if err != nil {
						t.Errorf("%v: the next call failed: %v", policy, err)
					}
				}
			}
		})
	}
}

func TestRun_Parked_ErrorHasCause(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	wantErr(t, err, errBoom)
}

func TestRun_HandlerPanics_IsDoubt(t *testing.T) {
	for policy, want := range map[semel.Policy]store.State{semel.Retry: store.Released, semel.Park: store.Unknown} {
		g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy})
		func() {
			defer func() {
				if p := recover(); p != "ouch" {
					t.Errorf("recovered %v, want the handler's panic", p)
				}
			}()
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) { panic("ouch") })
		}()
		if r := wantState(t, g, "k", want); r.Attempt != 1 {
			t.Errorf("%v: attempt %d, want 1", policy, r.Attempt)
		}
	}
}

func TestRun_HandlerCallsGoexit_IsDoubt(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			runtime.Goexit()
			return store.Outcome{}, nil
		})
	}()
	<-done
	wantState(t, g, "k", store.Unknown)
}

func TestRun_OtherOperationOrTenant_IsAnotherCall(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	for i, call := range []semel.Call{
		{Operation: pay, Tenant: "ann"}, {Operation: pay, Tenant: "bob"}, {Operation: pay, Tenant: semel.Shared}, {Operation: "refund", Tenant: "ann"},
	} {
		call.Key, call.Payload = "k", semel.NoPayload()
		body := fmt.Sprint(i)
		res, err := g.Run(t.Context(), call, answer(body))
		wantBody(t, res, err, body, false)
	}
}

func TestRun_InvalidCall_NamesFieldAndLimit(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		call semel.Call
		want string
	}{
		"zero call":      {semel.Call{}, "operation: is empty"},
		"no tenant":      {semel.Call{Operation: pay, Key: "k", Payload: semel.NoPayload()}, "tenant: is empty; name the account or user, or say semel.Shared"},
		"control":        {semel.Call{Operation: pay, Tenant: "\x00other", Key: "k", Payload: semel.NoPayload()}, "tenant: has a control character (0x00)"},
		"empty tenant":   {semel.Call{Operation: pay, Tenant: "", Key: "k", Payload: semel.NoPayload()}, "tenant: is empty"},
		"no operation":   {semel.Call{Operation: "", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, "operation: is empty"},
		"a step's sign":  {semel.Call{Operation: "a#b", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, "'#'"},
		"empty key":      {ann(""), "key: is empty; 1 to 255"},
		"long key":       {ann(long), "key: has 256 bytes; at most 255"},
		"control in key": {ann("a\nb"), "key: has a control character (0x0a) at byte 1"},
		"zero payload":   {semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.Payload{}}, "payload"},
		"unencodable":    {semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.JSON(func() {})}, "payload: json"},
	} {
		_, err := g.Run(t.Context(), c.call, never(t))
		if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrInvalid with %q", name, err, c.want)
		}
	}
	var zero semel.Guard
	_, err := zero.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInvalid)
}

func TestNew_InvalidOptions_ReportsAll(t *testing.T) {
	_, err := semel.New(memstore.New(nil), &semel.Options{
		OnDoubt: 7, Lease: time.Millisecond, Retention: -1, MaxAttempts: -2, Codecs: []semel.Codec{nil},
		Secrets: []semel.Secret{{ID: "", Key: []byte("short")}}, UnprotectedOnOutage: false,
	})
	wantErr(t, err, semel.ErrInvalid)
	for _, want := range []string{"OnDoubt: is 7", "Lease: is 1ms; it must be from 10ms", "Retention: is -1ns", "MaxAttempts: is -2", "Codecs[0]", "Secrets[0].ID", "has 5 bytes; at least 16"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	for name, o := range map[string]semel.Options{
		"reconcile without park":   {Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) { return semel.Verdict{}, nil }},
		"unprotected with park":    {OnDoubt: semel.Park, UnprotectedOnOutage: true},
		"two codecs with one name": {Codecs: []semel.Codec{jsonCodec("v1"), jsonCodec("v1")}},
	} {
		if _, err := semel.New(memstore.New(nil), &o); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: got error %v, want ErrInvalid", name, err)
		}
	}
	if _, err := semel.New(nil, nil); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("nil store: got error %v, want ErrInvalid", err)
	}
}

// A nil handler is refused before the store is asked, so that it leaves nothing in doubt.
func TestRun_HandlerIsNil_IsInvalidAndClaimsNothing(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	var runs int
	outer := func(use func(c semel.Call) error) error {
		return semel.Once(t.Context(), g, ann("outer"), func(_ context.Context, x *semel.Execution) error {
			runs++
			return errors.Join(use(x.Step("s")), use(x.Step("s")))
		})
	}
	for name, err := range map[string]error{
		"Run":  func() error { _, err := g.Run(t.Context(), ann("k"), nil); return err }(),
		"Once": semel.Once(t.Context(), g, ann("k"), nil),
		"Do":   func() error { _, err := semel.Do[int](t.Context(), g, ann("k"), nil); return err }(),
		"step": outer(func(c semel.Call) error { _, err := g.Run(t.Context(), c, nil); return err }),
	} {
		if !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	if _, err := g.Get(t.Context(), ann("k")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the store has a record: %v", err)
	}
	if runs != 1 {
		t.Errorf("the call around the step ran %d times", runs)
	}
}
