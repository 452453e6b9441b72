package erase_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// damaged has one more timer of each saga, of another tenant, which cannot be read.
type damaged struct{ *memstore.Store }

func (d damaged) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	due, now, err := d.Store.DueTimers(ctx, operation, within, limit)
	return due, now, errors.Join(err, store.ErrCorrupt)
}

func TestRun_TimerUnreadable_OthersAreErased(t *testing.T) {
	st := endedSaga(t)
	want := mustRun(t, st, erase.Scope{Tenant: "ann"}, nil)
	want.Failed++
	if want.Timers == 0 || want.Erased == 0 {
		t.Fatalf("%+v shows nothing", want)
	}
	if r := mustRun(t, damaged{endedSaga(t)}, erase.Scope{Tenant: "ann"}, nil); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// cutShort is a store whose list ends with the error of one record.
type cutShort struct{ *memstore.Store }

func (c cutShort) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		yield(store.Found{}, store.WithExtent(errors.New("access denied"), store.ExtentCall))
	}
}

func TestRun_ListEndsEarly_IsError(t *testing.T) {
	st := memstore.New(nil)
	everyState(t, st, "ann")
	if r, err := erase.Run(t.Context(), cutShort{st}, erase.Scope{Tenant: "ann"}, nil); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("%+v, error %v; want ErrUnavailable", r, err)
	}
}
