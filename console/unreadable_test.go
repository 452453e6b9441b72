package console_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// ring has one key, of its own name.
type ring string

func (r ring) Current(context.Context) (string, []byte, error) {
	return string(r), make([]byte, 32), nil
}

func (r ring) Key(_ context.Context, id string) ([]byte, error) {
	if id != string(r) {
		return nil, fmt.Errorf("%w: %s", encrypted.ErrUnknownKey, id)
	}
	return make([]byte, 32), nil
}

// The key of the steps was thrown away. The record itself has no outcome, so that it can be
// read and decided.
func TestRecord_StepsCannotBeDecrypted_CallIsShownAndDecided(t *testing.T) {
	st := memstore.New(nil)
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, Encryption: &encrypted.Cipher{Keys: ring("old")}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = semel.Do(t.Context(), g, semel.Call{Operation: "charge", Tenant: "ann", Key: "k", Payload: semel.NoPayload()},
		func(ctx context.Context, x *semel.Execution) (int, error) {
			_, _ = semel.Do(ctx, g, x.Step("reserve"), func(context.Context, *semel.Execution) (int, error) { return 1, nil })
			return 0, errors.New("lost")
		})
	s := serve(t, (&encrypted.Cipher{Keys: ring("new")}).Store(st), console.Options{Operator: eve})
	s.store = st
	k := named("charge", "ann", "k")
	s.want(s.get(k.path), http.StatusOK, "in doubt", `value="did-not-happen"`, "Its steps cannot be read", "--encryption-keys")
	s.want(s.post(k.path, s.formOf(k, "did-not-happen")), http.StatusOK, "Resolved.")
	if r := s.state(k.key); r.State != store.Released {
		t.Errorf("the record is %v", r.State)
	}
}

// unreadable is a store of which some records or steps cannot be read.
type unreadable struct {
	*memstore.Store
	key   string // of the record
	steps bool
}

var errUnreadable = fmt.Errorf("%w: the sum does not fit", store.ErrCorrupt)

func (u unreadable) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if k.Value == u.key {
		return store.Found{}, errUnreadable
	}
	return u.Store.Get(ctx, k)
}

func (u unreadable) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if u.steps {
		return nil, errUnreadable
	}
	return u.Store.Steps(ctx, l)
}

func TestRecord_CannotBeRead_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{})
	broken := serve(t, unreadable{s.store, "parked", false}, console.Options{})
	page := broken.get(named("POST /payments", "ann", "parked").path)
	s.want(page, http.StatusInternalServerError, "The record cannot be read", "the sum does not fit", "semel inspect get")
	if strings.Contains(page.body, "did not answer") {
		t.Errorf("the page says that the store did not answer:\n%s", page.body)
	}
}

// A saga is decided about its steps. Nobody can do that who does not see them.
func TestRecord_StepsOfSagaCannotBeRead_NoForm(t *testing.T) {
	s := newSite(t, console.Options{})
	page := serve(t, unreadable{s.store, "", true}, console.Options{Operator: eve}).get(stuck().path)
	s.want(page, http.StatusOK, "stuck", "Its steps cannot be read")
	if strings.Contains(page.body, `name="act"`) {
		t.Errorf("the page has a form:\n%s", page.body)
	}
}

func TestSagas_RecordCannotBeRead_OthersAreListed(t *testing.T) {
	s := newSite(t, console.Options{})
	k := stuck().key
	k.Value = "o0"
	claim := store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{9}, Attempt: 1, Lease: time.Hour}
	if _, err := s.store.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.SetTimer(t.Context(), k, store.Owner{}, store.Owner{9}, time.Minute); err != nil {
		t.Fatal(err)
	}
	o := console.Options{Sagas: []string{"order"}}
	s.want(serve(t, unreadable{s.store, "o0", false}, o).get("sagas"), http.StatusOK, ">o1<", "Some sagas cannot be read")
}

// partlyDown is a store of two parts, of which one does not answer, as package shardstore has it.
type partlyDown struct {
	*memstore.Store
}

var errDown = errors.New("shard b: connection refused")

func (p partlyDown) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for found, err := range p.Store.List(ctx, f) {
			if !yield(found, err) {
				return
			}
		}
		yield(store.Found{}, errDown)
	}
}

func (p partlyDown) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	due, now, _ := p.Store.DueTimers(ctx, operation, within, limit)
	return due, now, errDown
}

// sagasOnly is a partlyDown whose working part has sagas alone.
type sagasOnly struct{ partlyDown }

func (s sagasOnly) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		for found, err := range s.partlyDown.List(ctx, f) {
			if (err != nil || strings.HasSuffix(found.Record.Key.Operation, "##saga")) && !yield(found, err) {
				return
			}
		}
	}
}

func TestOverview_PartOfStoreDown_ShowsTheOther(t *testing.T) {
	s := newSite(t, console.Options{})
	o := console.Options{Sagas: []string{"order", "trip"}}
	half := serve(t, partlyDown{s.store}, o)
	const note = "A part of the store did not answer, so the list is not whole: shard b: connection refused"
	s.want(half.get(""), http.StatusOK, ">parked<", ">o1<", note, `<span class="state in-doubt">3&#43;</span>`, `<span class="state stuck">1&#43;</span>`)
	s.want(half.get("records"), http.StatusOK, ">parked<", ">done<", note)
	s.want(half.get("sagas"), http.StatusOK, ">o1<", note)
	// Nothing was found, and nothing is known of the other part.
	s.want(half.get("sagas?name=trip"), http.StatusServiceUnavailable, "shard b: connection refused")
	s.want(half.get("records?state=released"), http.StatusServiceUnavailable, "shard b: connection refused")
	s.want(half.get("records?key=nobody"), http.StatusServiceUnavailable, "shard b: connection refused")
	s.want(half.get("records?key=parked"), http.StatusOK, ">parked<", note)
	if page := serve(t, sagasOnly{partlyDown{s.store}}, o).get(""); page.StatusCode != http.StatusOK || !strings.Contains(page.body, ">o1<") || strings.Contains(page.body, "No call is in doubt") {
		t.Errorf("with a saga and half of a store, and no call: %d\n%s", page.StatusCode, page.body)
	}
	empty := serve(t, partlyDown{memstore.New(nil)}, o)
	s.want(empty.get(""), http.StatusServiceUnavailable, "The store did not answer: shard b: connection refused")
}

// boxDown is an outbox of which the database does not answer.
type boxDown struct {
	*outboxtest.Memory
}

func (boxDown) Stats(context.Context) (outbox.Stats, error) { return outbox.Stats{}, errDown }

func (boxDown) ListCall(context.Context, string, int) ([]outbox.Entry, error) { return nil, errDown }

func TestOverview_OutboxDown_ShowsCallsInDoubt(t *testing.T) {
	s := newSite(t, console.Options{Outbox: boxDown{outboxtest.NewMemory()}})
	page := s.get("")
	s.want(page, http.StatusOK, ">parked<", "The outbox did not answer: shard b: connection refused")
	if strings.Contains(page.body, "No message is quarantined") {
		t.Errorf("the page is\n%s", page.body)
	}
}
