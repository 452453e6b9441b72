package redisstore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// A duplicate must not be told that a call is done if a fail-over can lose the record.
func TestDuplicate_ReplicaHasNoOutcome_IsNotAnswered(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	patient := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	first := claim(t, patient, "k")
	complete(t, patient, "old", "earlier")
	s := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 100 * time.Millisecond})
	if err := f.Cut(); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), first.Lease(), completion("receipt")); !errors.Is(err, ErrUnconfirmed) {
		t.Fatalf("the settlement: %v, want ErrUnconfirmed", err)
	}
	refusesDuplicates(t, first, store.Completed, func() *Store { return s })
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Fatal(err)
	}
	after := openFailover(t, f, &Options{})
	waitFor(t, "the new master answers", func() bool {
		later, err := after.Get(t.Context(), first.Key)
		if err == nil && later.Record.State != store.Processing {
			t.Errorf("after the fail-over the record is %v: the harness has lost nothing", later.Record.State)
		}
		return err == nil
	})
	if got := get(t, after, "old"); string(got.Outcome.Body) != "earlier" {
		t.Errorf("the outcome that the replica had is %q", got.Outcome.Body)
	}
}

// refusesDuplicates asks in each way for the record of a claim that is in a state by now. Get
// answers nobody about a call in flight.
func refusesDuplicates(t *testing.T, held store.Record, state store.State, open func() *Store) {
	t.Helper()
	other := held.Seen()
	other.Fence++
	for way, ask := range map[string]func(s *Store) (store.Found, error){
		"Claim":   func(s *Store) (store.Found, error) { return s.Claim(t.Context(), proposal("k")) },
		"Get":     func(s *Store) (store.Found, error) { return s.Get(t.Context(), held.Key) },
		"Swap":    func(s *Store) (store.Found, error) { return s.Swap(t.Context(), other, proposal("k")) },
		"Receive": func(s *Store) (store.Found, error) { return s.Receive(t.Context(), held, nil) },
	} {
		if way == "Get" && !state.Terminal() {
			continue
		}
		f, err := ask(open())
		if !errors.Is(err, ErrUnconfirmed) || f.Won || f.Record.State != state || f.Record.Outcome.Body != nil {
			t.Errorf("%s: won %v, state %v, %q, error %v; want a record without its outcome, and ErrUnconfirmed", way, f.Won, f.Record.State, f.Record.Outcome.Body, err)
		}
	}
}

// A duplicate whose answer is not confirmed gets ErrUnavailable, and by HTTP 503. Even a
// Guard that goes on without a record in an outage does not run the handler again.
func TestGuard_OutcomeUnconfirmed_DuplicateIsUnavailable(t *testing.T) {
	s, other := doubtful(t)
	call := semel.Call{Operation: "pay", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
	runs := 0
	handler := func(context.Context, *semel.Execution) (store.Outcome, error) {
		runs++
		return store.Outcome{Body: []byte("receipt")}, nil
	}
	guard := func(st store.Store, bare bool) *semel.Guard {
		g, err := semel.New(st, &semel.Options{StoreTimeout: 5 * time.Second, UnprotectedOnOutage: bare})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if _, err := guard(other, false).Run(t.Context(), call, handler); err != nil || runs != 1 {
		t.Fatalf("%d runs, error %v", runs, err)
	}
	for _, bare := range []bool{false, true} {
		res, err := guard(s, bare).Run(t.Context(), call, handler)
		if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, ErrUnconfirmed) || res.Body != nil || runs != 1 {
			t.Errorf("bare %v: %d runs, %q, error %v; want ErrUnavailable by ErrUnconfirmed", bare, runs, res.Body, err)
		}
	}
}

func TestHTTP_OutcomeUnconfirmed_DuplicateIs503(t *testing.T) {
	s, other := doubtful(t)
	runs := 0
	serve := func(st store.Store) *httptest.ResponseRecorder {
		g, err := semel.New(st, &semel.Options{StoreTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		m, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return semel.Shared, nil }, &semelhttp.Options{Operation: func(*http.Request) string { return "pay" }})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pay", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", `"k"`)
		w := httptest.NewRecorder()
		m(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			runs++
			_, _ = io.WriteString(w, "receipt")
		})).ServeHTTP(w, r)
		return w
	}
	if w := serve(other); w.Code != http.StatusOK {
		t.Fatalf("the first request: %d %s", w.Code, w.Body)
	}
	if w := serve(s); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "receipt") || runs != 1 {
		t.Errorf("a duplicate: %d %s, %d runs; want 503", w.Code, w.Body, runs)
	}
}

// A waiting duplicate reads the record with Get when the call has ended.
func TestGuard_WaitsForUnconfirmedOutcome_IsUnavailable(t *testing.T) {
	s, other := doubtful(t)
	call := semel.Call{Operation: "pay", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload(), Wait: time.Minute}
	first, err := semel.New(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	looks := &lookStore{Store: s, looked: make(chan struct{}, 1)}
	second, err := semel.New(looks, &semel.Options{StoreTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	_, err = first.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
		go func() {
			_, err := second.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{}, errors.New("the duplicate ran")
			})
			got <- err
		}()
		<-looks.looked // the duplicate waits
		return store.Outcome{Body: []byte("receipt")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("the waiting duplicate: %v, want ErrUnavailable by ErrUnconfirmed", err)
	}
}

// lookStore tells of its reads.
type lookStore struct {
	store.Store
	looked chan struct{}
}

func (s *lookStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	select {
	case s.looked <- struct{}{}:
	default:
	}
	return s.Store.Get(ctx, k)
}

// sentHook keeps the names of the commands of each round trip, and says that all changes
// are acknowledged.
type sentHook struct{ trips []string }

func (h *sentHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *sentHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.trips = append(h.trips, cmd.Name())
		return next(ctx, cmd)
	}
}

func (h *sentHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, cmd := range cmds {
			names = append(names, cmd.Name())
		}
		h.trips = append(h.trips, strings.Join(names, " "))
		err := next(ctx, cmds)
		if wait, ok := cmds[len(cmds)-1].(*redis.IntCmd); ok {
			wait.SetVal(1)
		}
		return err
	}
}

// A confirmation shares the round trip and the WAIT that a claim has anyway. Only a read of
// a record that has ended takes another round trip, and without Options.Replicas nothing
// changes.
func TestRoundTrips_Confirmation_CostsNoneForClaims(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		o := Options{Prefix: newPrefix(), Replicas: replicas, AckTimeout: 10 * time.Millisecond}
		s := openNew(t, &o)
		h := &sentHook{}
		ask := func(what, key string, want ...string) {
			t.Helper()
			h.trips = nil
			var err error
			if what == "Get" {
				_, err = s.Get(t.Context(), testKey(key))
			} else {
				_, err = s.Claim(t.Context(), proposal(key))
			}
			if err != nil || strings.Join(h.trips, ", ") != strings.Join(want, ", ") {
				t.Errorf("Replicas %d, %s of %s: sent %q, error %v; want %q", replicas, what, key, h.trips, err, want)
			}
		}
		s.client.AddHook(h)
		complete(t, s, "done", "x")
		_, _ = s.Get(t.Context(), testKey("done")) // the server has the scripts now, and was looked at
		_, _ = s.Claim(t.Context(), proposal("done"))
		change := "evalsha"
		if replicas > 0 {
			change = "evalsha wait"
		}
		ask("Claim", "new", change)
		ask("Claim", "new", change)
		ask("Claim", "done", change)
		ask("Get", "new", "evalsha")
		if replicas > 0 {
			ask("Get", "done", "evalsha", change)
		} else {
			ask("Get", "done", "evalsha")
		}
		record, _ := s.name(testKey("done").Digest())
		if ttl := s.client.TTL(t.Context(), record).Val(); ttl <= 0 || ttl > 2*time.Hour {
			t.Errorf("Replicas %d: after the confirmation Redis keeps the record for %v", replicas, ttl)
		}
		if got := get(t, s, "done"); string(got.Outcome.Body) != "x" {
			t.Errorf("Replicas %d: after the confirmation the outcome is %q", replicas, got.Outcome.Body)
		}
	}
}
