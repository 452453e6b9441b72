package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// server answers the n-th request of each key, from 0, by h.
func server(t *testing.T, h func(w http.ResponseWriter, r *http.Request, n int, body string)) string {
	var mu sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has hung up already
		}
		key := r.Header.Get(ledger.TenantHeader) + "/" + r.Header.Get(ledger.KeyHeader)
		mu.Lock()
		n := seen[key]
		seen[key]++
		mu.Unlock()
		h(w, r, n, string(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func orders(n int) []Order {
	all := make([]Order, n)
	for i := range all {
		all[i] = Order{Name: fmt.Sprint("order-", i), Tenant: "ada", Key: fmt.Sprint("key-", i), Amount: 100}
	}
	return all
}

func receipt(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, text)
}

func TestFleet_NoFinalAnswer_SendsAgain(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, _ *http.Request, n int, _ string) {
		switch n {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			panic(http.ErrAbortHandler) // the connection breaks
		case 2:
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"code":"in_progress"}`)
		case 3:
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"code":"outcome_unknown"}`)
		case 4:
			w.Header().Set("Content-Length", "100") // and the answer is cut off
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, "half")
		default:
			receipt(w, "paid")
		}
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	got := f.Outcomes()[0]
	if len(got.Acks) != 1 || got.Acks[0] != (Answer{201, "application/json", "paid"}) || got.Open != 0 || got.Latency != 0 {
		t.Errorf("got %+v", got)
	}
	if f.Sent.Load() != 6 || f.Failed.Load() != 3 || f.Conflicts.Load() != 2 || f.Unknown.Load() != 1 || f.Steps.Load() != 1 || f.InFlight.Load() != 0 {
		t.Errorf("sent %d, failed %d, conflicts %d, unknown %d", f.Sent.Load(), f.Failed.Load(), f.Conflicts.Load(), f.Unknown.Load())
	}
}

func TestFleet_Repetition_HasSameKeyAndBytes(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	url := server(t, func(w http.ResponseWriter, _ *http.Request, n int, body string) {
		mu.Lock()
		bodies = append(bodies, body)
		mu.Unlock()
		if n < 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		receipt(w, "paid")
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	if len(bodies) != 3 || bodies[0] != bodies[1] || bodies[1] != bodies[2] || bodies[0] != `{"order":"order-0","amount":100}` {
		t.Errorf("got %q", bodies)
	}
}

func TestFleet_ImpatientClient_HangsUpAndComesAgain(t *testing.T) {
	hungUp := make(chan struct{})
	url := server(t, func(w http.ResponseWriter, r *http.Request, n int, _ string) {
		if n == 0 {
			<-r.Context().Done()
			close(hungUp)
			return
		}
		<-hungUp
		receipt(w, r.Header.Get(ledger.WorkHeader))
	})
	all := orders(1)
	all[0].Work = Slow
	f := New(&Plan{Orders: all, Steps: []Step{{Copies: 1, HangUp: 2 * time.Second}}}, url) // by then the request is there
	f.Run(t.Context(), 1)
	if got := f.Outcomes()[0]; len(got.Acks) != 1 || got.Acks[0].Body != "60ms" || got.Latency != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFleet_Copies_SentAtOnce(t *testing.T) {
	all := make(chan struct{})
	var mu sync.Mutex
	n := 0
	url := server(t, func(w http.ResponseWriter, _ *http.Request, _ int, _ string) {
		mu.Lock()
		if n++; n == 4 {
			close(all)
		}
		mu.Unlock()
		<-all // none is answered until all are there
		receipt(w, "paid")
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 4}}}, url)
	f.Run(t.Context(), 1)
	if got := f.Outcomes()[0]; len(got.Acks) != 4 || got.Latency != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFleet_ChangedPayload_WaitsForTheFirst(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, _ *http.Request, n int, body string) {
		switch {
		case strings.Contains(body, "101"):
			w.WriteHeader(http.StatusUnprocessableEntity)
		case n < 3: // so that it would overtake, if it could
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			receipt(w, fmt.Sprint(n))
		}
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}, {Kind: Changed, Copies: 1}}}, url)
	f.Run(t.Context(), 2)
	got := f.Outcomes()[0]
	if len(got.Acks) != 1 || got.Acks[0].Body != "3" || got.Accepted != 0 || len(got.Odd) != 0 || got.Refused != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestFleet_UnexpectedAnswer_IsNoted(t *testing.T) {
	url := server(t, func(w http.ResponseWriter, _ *http.Request, _ int, body string) {
		if strings.Contains(body, "101") { // changed, and taken
			receipt(w, "paid")
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity) // not changed, and refused
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}, {Kind: Changed, Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	if got := f.Outcomes()[0]; len(got.Acks) != 0 || got.Accepted != 1 || len(got.Odd) != 1 || got.Odd[0].Status != 422 {
		t.Errorf("got %+v", got)
	}
}

func TestFleet_NoAnswerAtTheEnd_IsOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := server(t, func(w http.ResponseWriter, _ *http.Request, n int, _ string) {
		w.WriteHeader(http.StatusServiceUnavailable)
		if n == 2 {
			cancel()
		}
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}, {Kind: Changed, Copies: 1}}}, url)
	f.Run(ctx, 2)
	if got := f.Outcomes()[0]; got.Open != 2 || len(got.Acks) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestLatency_FirstUndisturbedRequest_Counts(t *testing.T) {
	var f *Fleet
	url := server(t, func(w http.ResponseWriter, r *http.Request, _ int, _ string) {
		if r.Header.Get(ledger.KeyHeader) == "key-3" {
			f.Disturbed.Store(true)
		}
		w.Header().Set("Idempotent-Replayed", "true")
		receipt(w, "paid")
	})
	all := orders(6)
	all[5].Work = Slow
	f = New(&Plan{Orders: all, Steps: []Step{
		{Copies: 1}, {Order: 1, Copies: 1}, {Kind: Again, Order: 2, Copies: 1}, {Order: 5, Copies: 1}, {Order: 3, Copies: 1}, {Order: 4, Copies: 1},
	}}, url)
	f.Run(t.Context(), 1)
	var counted []int
	for i, o := range f.Outcomes() {
		if o.Latency > 0 {
			counted = append(counted, i)
		}
	}
	if !slices.Equal(counted, []int{1}) {
		t.Errorf("latencies of %v count; 0 was cold, 2 no first request, 3 disturbed, and 5 slow", counted)
	}
	if f.Replays.Load() != 6 {
		t.Errorf("%d replays", f.Replays.Load())
	}
}
