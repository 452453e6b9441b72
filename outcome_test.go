package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 10.
func TestOutcome_TooLarge_LeavesTombstone(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	big := strings.Repeat("x", 11)
	res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: "/1"}}, Body: []byte(big)}, nil
	})
	wantBody(t, res, err, big, false)
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
	if !res.Replayed || res.Code != 201 || !res.Gone || res.Body != nil {
		t.Errorf("the tombstone is %+v, want code 201 and no body", res)
	}
	res, err = g.Run(t.Context(), ann("fits"), answer(big[:10]))
	wantBody(t, res, err, big[:10], false)
	res, err = g.Run(t.Context(), ann("fits"), never(t))
	wantBody(t, res, err, big[:10], true)
}

func TestOutcome_FailureTooLarge_IsFailureNotKept(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	_, _ = g.Run(t.Context(), ann("k"), fail(&semel.Failure{Message: "much longer than ten bytes"}))
	_, err := g.Run(t.Context(), ann("k"), never(t))
	if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "failure_not_kept" {
		t.Errorf("got error %v, want a Failure with the code failure_not_kept", err)
	}
}

// Rule 7: retention counts from completion and does not depend on the lease.
func TestRetention_LongRun_CountsFromCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{Retention: time.Hour})
		_, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			time.Sleep(3 * time.Hour)
			return store.Outcome{Body: []byte("one")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Microsecond)
		res, err := g.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "one", true)
		time.Sleep(time.Microsecond)
		res, err = g.Run(t.Context(), ann("k"), answer("two"))
		wantBody(t, res, err, "two", false)
		if r := record(t, g, "k"); r.Attempt != 1 || !r.Created.After(time.Now().Add(-time.Second)) {
			t.Errorf("after the retention the record has attempt %d, created %v; want a new record", r.Attempt, r.Created)
		}
	})
}

// Rule 8: a caller that changes its result does not change the kept one.
func TestOutcome_ChangedByCaller_KeptOneStays(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	body, header := []byte("paid"), []store.Header{{Name: "Location", Value: "/1"}}
	res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: body, Header: header}, nil
	})
	wantBody(t, res, err, "paid", false)
	copy(body, "void")
	header[0].Value = "/2"
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "paid", true)
	if got := res.Header; len(got) != 1 || got[0].Value != "/1" {
		t.Errorf("the kept header is %q, want one Location of /1", got)
	}
}

// Rule 10.
func TestOutcome_HeadersTooLarge_LeaveTombstone(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	for key, header := range map[string][]store.Header{
		"long value": {{Name: "A", Value: "12345678901"}}, "many lines": {{Name: "A", Value: "12345"}, {Name: "A", Value: "67890"}}, "long name": {{Name: "Content-Typ", Value: ""}},
	} {
		_, err := g.Run(t.Context(), ann(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 201, Header: header, Body: []byte("b")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := g.Run(t.Context(), ann(key), never(t))
		wantErr(t, err, semel.ErrNotKept)
		if res.Header != nil || res.Code != 201 {
			t.Errorf("%s: the tombstone is %+v, want code 201 and no header", key, res)
		}
	}
}

func TestOutcome_BodyTooLargeForStore_LeavesTombstone(t *testing.T) {
	st := memstore.New(nil)
	h := &hooks{Store: st}
	h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
		if len(s.Outcome.Body) > 3 {
			return store.ErrTooLarge
		}
		return st.Settle(ctx, l, s)
	}
	g := guard(t, h, nil)
	res, err := g.Run(t.Context(), ann("k"), answer("large"))
	wantBody(t, res, err, "large", false)
	_, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
}

func TestOutcome_FailureDataTooLarge_KeepsCode(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	declined := &semel.Failure{Code: "declined", Data: make([]byte, 900_000)}
	_, err := g.Run(t.Context(), ann("k"), fail(declined))
	wantErr(t, err, &semel.Failure{Code: "declined"})
	_, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, &semel.Failure{Code: "declined"})
}

func TestOutcome_AppendToReplayedBody_ChangesNoOther(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, _ = g.Run(t.Context(), ann("k"), answer("12345"))
	a, _ := g.Run(t.Context(), ann("k"), never(t))
	b, _ := g.Run(t.Context(), ann("k"), never(t))
	x := append(a.Body, 'x')
	_ = append(b.Body, 'y')
	if string(x) != "12345x" {
		t.Errorf("the body is %q, want 12345x", x)
	}
}

func TestOutcome_HeadersTooLargeForStore_LeaveTombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st}
		h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if len(s.Outcome.Body) > 0 || len(s.Outcome.Header) > 0 {
				return store.ErrTooLarge
			}
			return st.Settle(ctx, l, s)
		}
		g := guard(t, h, &semel.Options{MaxOutcome: 100})
		_, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Header: []store.Header{{Name: "A", Value: strings.Repeat("x", 90)}}, Body: make([]byte, 50)}, nil
		})
		if err != nil {
			t.Errorf("got error %v, want a stored tombstone", err)
		}
	})
}
