package timed_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/store/timed"
)

func ignore(context.Context, string, time.Duration, error) {}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{Open: func(testing.TB) store.Store { return timed.New(memstore.New(nil), ignore) }})
}

func TestStore_EachRequest_MeasuredByName(t *testing.T) {
	var names []string
	var errs []error
	inner := memstore.New(nil)
	st := timed.New(inner, func(_ context.Context, request string, took time.Duration, err error) {
		if took <= 0 {
			t.Errorf("%s took %v", request, took)
		}
		names, errs = append(names, request), append(errs, err)
	})
	p := store.Proposal{
		Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute, Keep: time.Hour,
	}
	f, err := st.Claim(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = st.Swap(t.Context(), store.Seen{Key: store.Key{Operation: "o", Value: "none"}}, p)
	_, _ = st.Renew(t.Context(), []store.Lease{f.Record.Lease()}, time.Minute)
	_ = st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour})
	_, _ = st.Get(t.Context(), f.Record.Key)
	_, _ = st.Sweep(t.Context(), "", 1)
	if !slices.Equal(names, timed.Requests()) {
		t.Errorf("measured %q, want %q", names, timed.Requests())
	}
	if !errors.Is(errs[1], store.ErrNotFound) || errs[0] != nil || errs[3] != nil {
		t.Errorf("the errors are %v", errs)
	}
	if l, ok := store.As[store.Lister](st); !ok || l != store.Lister(inner) {
		t.Error("the inner store's list is not found")
	}
}

func TestAnswered_ErrorOfTheRecord_IsAnswer(t *testing.T) {
	for err, want := range map[error]bool{nil: true, store.ErrNotFound: true, store.ErrLeaseLost: true, context.DeadlineExceeded: false, errors.New("broken pipe"): false} {
		if timed.Answered(err) != want {
			t.Errorf("%v: answered is %v", err, !want)
		}
	}
}
