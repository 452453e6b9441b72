package console_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// hostile is a key and a tenant that no page may take for anything but text.
const hostile = `"><script>alert(1)</script>`

// site is a console over a store with a record of each kind.
type site struct {
	*testing.T
	store *memstore.Store
	url   string
	log   *bytes.Buffer
}

func newSite(t *testing.T, o console.Options) *site {
	t.Helper()
	s := siteOver(t, memstore.New(nil), o)
	s.seed()
	return s
}

// siteOver is a console over a store of the test's own.
func siteOver(t *testing.T, st *memstore.Store, o console.Options) *site {
	t.Helper()
	s := serve(t, st, o)
	s.store = st
	return s
}

// serve is a console over any store.
func serve(t *testing.T, st store.Store, o console.Options) *site {
	t.Helper()
	s := &site{T: t, log: new(bytes.Buffer)}
	o.Log = slog.New(slog.NewJSONHandler(s.log, nil))
	page, err := console.New(st, &o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/deep/admin/", http.StripPrefix("/deep/admin", page))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL + "/deep/admin/"
	return s
}

// seed makes records by calls, as an application does.
func (s *site) seed() {
	s.Helper()
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		s.Fatal(err)
	}
	for key, end := range map[string]func() (store.Outcome, error){
		"done": func() (store.Outcome, error) {
			return store.Outcome{Code: 201, Body: []byte(`{"canary":1}`), Header: []store.Header{{Name: "Set-Cookie", Value: "canary-cookie"}, {Name: "Location", Value: "/p/1"}}}, nil
		},
		"parked": func() (store.Outcome, error) { return store.Outcome{}, errors.New("the answer of the bank was lost") },
		"failed": func() (store.Outcome, error) { return store.Outcome{}, semel.Final(errors.New("declined")) },
		hostile:  func() (store.Outcome, error) { return store.Outcome{}, errors.New(hostile) },
	} {
		digest := semel.Digest("semelhttp/1", make([]byte, 32))
		_, _ = g.Run(s.Context(), semel.Call{Operation: "POST /payments", Tenant: "ann", Key: key, Payload: digest},
			func(context.Context, *semel.Execution) (store.Outcome, error) { return end() })
	}
	_, _ = semel.Do(s.Context(), g, semel.Call{Operation: "charge", Tenant: hostile, Key: "call", Payload: semel.NoPayload()},
		func(context.Context, *semel.Execution) (int, error) { return 0, errors.New("lost") })
	s.stuckSaga()
}

// stuckSaga starts a saga whose second step is in doubt.
func (s *site) stuckSaga() {
	s.Helper()
	g, err := semel.New(s.store, nil)
	if err != nil {
		s.Fatal(err)
	}
	order, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"reserve", "charge"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			if _, err := saga.Step(ctx, r, "reserve", func(context.Context, saga.At) (string, error) { return "reserved", nil }, nil); err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "", errors.New("no answer") }, nil, saga.Parked())
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := order.Do(s.Context(), "ann", "o1", "a book"); !errors.Is(err, semel.ErrParked) {
		s.Fatalf("the saga ended with %v, want it stuck", err)
	}
}

// stuckUndo starts a saga that turns back, and whose compensation fails.
func (s *site) stuckUndo() record {
	s.Helper()
	g, err := semel.New(s.store, nil)
	if err != nil {
		s.Fatal(err)
	}
	trip, err := saga.New(g, saga.Definition[string, string]{
		Name: "trip", Steps: []string{"charge"}, UndoAttempts: 1,
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			_, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "charged", nil },
				func(context.Context, saga.At, string) error { return errors.New("the bank is down") })
			if err != nil {
				return "", err
			}
			return "", semel.Final(errors.New("no seat"))
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := trip.Do(s.Context(), "ann", "t1", "a seat"); !errors.Is(err, semel.ErrParked) {
		s.Fatalf("the saga ended with %v, want it stuck", err)
	}
	k := saga.Key("trip", "ann", "t1")
	return named(k.Operation, k.Tenant, k.Value)
}

// answer is a page as a browser gets it.
type answer struct {
	*http.Response
	body string
}

func (s *site) do(r *http.Request) answer {
	s.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{resp, string(b)}
}

func (s *site) get(path string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	return s.do(r)
}

// post sends a form as a browser does from a page of the console itself.
func (s *site) post(path string, form url.Values) answer {
	s.Helper()
	return s.do(s.form(path, form))
}

func (s *site) form(path string, form url.Values) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func (s *site) want(a answer, status int, texts ...string) {
	s.Helper()
	if a.StatusCode != status {
		s.Errorf("%s: status %d, want %d", a.Request.URL, a.StatusCode, status)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			s.Errorf("%s: no %q in\n%s", a.Request.URL, text, a.body)
		}
	}
}

// record is a key with the address of its page.
type record struct {
	key  store.Key
	path string
}

func named(operation, tenant, key string) record {
	return record{store.Key{Operation: operation, Tenant: tenant, Value: key}, "record?" + url.Values{"operation": {operation}, "tenant": {tenant}, "key": {key}}.Encode()}
}

// stuck is the saga of stuckSaga.
func stuck() record {
	k := saga.Key("order", "ann", "o1")
	return named(k.Operation, k.Tenant, k.Value)
}

func (s *site) state(k store.Key) store.Record {
	s.Helper()
	f, err := s.store.Get(s.Context(), k)
	if err != nil {
		s.Fatal(err)
	}
	return f.Record
}

// formOf fills in what the page of a record sends with each form.
func (s *site) formOf(r record, act string, more ...string) url.Values {
	s.Helper()
	form := url.Values{
		"operation": {r.key.Operation}, "tenant": {r.key.Tenant}, "key": {r.key.Value},
		"fence": {strconv.FormatUint(s.state(r.key).Fence, 10)}, "act": {act}, "reason": {"ledger 4711"},
	}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

var links = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
