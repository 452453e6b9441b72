package semel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// unconfirmed is a store that makes each claim and returns an error, until healed: a replica is
// away, or replies are lost. After the claim, then changes the record.
func unconfirmed(st store.Store, healed *atomic.Bool, showsRecord bool, then func(r store.Record)) *hooks {
	return &hooks{Store: st, claim: func(ctx context.Context, p store.Proposal) (store.Found, error) {
		f, err := st.Claim(ctx, p)
		if healed.Load() {
			return f, err
		}
		if err == nil && f.Won && then != nil {
			then(f.Record)
		}
		if !showsRecord {
			f = store.Found{}
		}
		f.Won = false
		return f, errors.Join(err, errBoom)
	}}
}

// Nobody else has the key, so the call runs. Its claim is given back.
func TestUnprotected_OwnClaimIsThere_Runs(t *testing.T) {
	for _, showsRecord := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			var healed atomic.Bool
			var seen events
			g := guard(t, unconfirmed(st, &healed, showsRecord, nil), &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe})
			res, err := g.Run(t.Context(), ann("k"), answer("bare"))
			wantBody(t, res, err, "bare", false)
			if n := seen.count(semel.EventUnprotected); n != 1 {
				t.Errorf("the record comes with the error %v: %d events EventUnprotected", showsRecord, n)
			}
			wantState(t, g, "k", store.Processing)
			healed.Store(true)
			time.Sleep(20 * time.Second) // less than the lease
			synctest.Wait()
			wantState(t, g, "k", store.Released)
		})
	}
}

// The claim is the call's, or was, but somebody else has the record now, or it has an outcome.
func TestUnprotected_OwnClaimWasTakenOverOrSettled_DoesNotRun(t *testing.T) {
	for _, showsRecord := range []bool{false, true} {
		for _, settled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New(nil)
				h := unconfirmed(st, &atomic.Bool{}, showsRecord, func(r store.Record) {
					var err error
					if settled {
						err = st.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Completed, Keep: time.Hour})
					} else {
						_, err = st.Swap(t.Context(), r.Seen(), store.Proposal{Key: r.Key, State: store.Processing, Owner: store.Owner{9}, Attempt: 1, Lease: time.Hour})
					}
					if err != nil {
						t.Error(err)
					}
				})
				_, err := guard(t, h, &semel.Options{UnprotectedOnOutage: true}).Run(t.Context(), ann("k"), never(t))
				wantErr(t, err, semel.ErrUnavailable)
				time.Sleep(time.Minute)
			})
		}
	}
}

// A record that has expired counts as absent for a new call. For a token it does not, because it
// may say that the call has run.
func TestUnprotected_RecordHasExpired_NewCallRunsAndTokenDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		healthy := guard(t, st, &semel.Options{Retention: time.Hour})
		ticket, err := healthy.Reserve(t.Context(), ann("k"))
		wantErr(t, err, nil)
		reserved, err := healthy.Redeem(ticket.Token)
		wantErr(t, err, nil)
		res, err := healthy.Run(t.Context(), reserved, answer("first"))
		wantBody(t, res, err, "first", false)
		time.Sleep(2 * time.Hour)

		for _, showsRecord := range []bool{false, true} {
			h := unconfirmed(st, &atomic.Bool{}, showsRecord, nil)
			looks := 0
			g := guard(t, h, &semel.Options{UnprotectedOnOutage: true})
			res, err = g.Run(t.Context(), ann("k"), answer("bare"))
			wantBody(t, res, err, "bare", false)
			h.get = func(ctx context.Context, k store.Key) (store.Found, error) {
				if looks++; looks > 1 {
					return store.Found{}, errBoom
				}
				f, err := st.Get(ctx, k)
				return f, errors.Join(err, errBoom)
			}
			_, err = g.Run(t.Context(), reserved, never(t))
			wantErr(t, err, semel.ErrUnavailable)
		}
		time.Sleep(time.Minute)
	})
}

// net/http recovers a panic of a handler: without an event nobody would know of the run.
func TestObserve_UnprotectedRunPanics_OneEndingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, down, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe})
		func() {
			defer func() { _ = recover() }()
			_, _ = g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) { panic("later") })
		}()
		var ends []semel.Event
		for _, e := range seen.all {
			if e.EndsCall {
				ends = append(ends, e)
			}
		}
		if len(ends) != 1 || ends[0].Kind != semel.EventUnprotected || ends[0].Err == nil {
			t.Errorf("the ending events are %v, want one EventUnprotected with an error", ends)
		}
		time.Sleep(time.Minute)
	})
}
