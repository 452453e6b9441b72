package fleet

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

func TestAnswer_Undecided_IsNotFinal(t *testing.T) {
	for status, want := range map[int]bool{
		200: true, 201: true, 204: true, 303: true, 400: true, 404: true, 410: true, 412: true, 422: true,
		100: false, 408: false, 409: false, 425: false, 429: false, 500: false, 502: false, 503: false, 504: false,
	} {
		if final(status) != want {
			t.Errorf("%d: final is %v", status, final(status))
		}
	}
}

func TestRequest_Headers_NameTenantAndKey(t *testing.T) {
	var got http.Header
	var length int64
	url := server(t, func(w http.ResponseWriter, r *http.Request, _ int, _ string) {
		got, length = r.Header, r.ContentLength
		receipt(w, "paid")
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	if got.Get(ledger.TenantHeader) != "ada" || got.Get(ledger.KeyHeader) != "key-0" || got.Get("Content-Type") != "application/json" || length <= 0 {
		t.Errorf("got %v, %d bytes", got, length)
	}
	if _, ok := got[http.CanonicalHeaderKey(ledger.WorkHeader)]; ok {
		t.Error("a usual order says how long it takes")
	}
}

// http.Transport repeats a request with an Idempotency-Key by itself when a
// kept connection dies. Here each repetition is to be counted.
func TestRequest_RepeatedByClient_IsCounted(t *testing.T) {
	var mu sync.Mutex
	arrived := 0
	url := server(t, func(w http.ResponseWriter, r *http.Request, n int, _ string) {
		mu.Lock()
		arrived++
		mu.Unlock()
		if r.Header.Get(ledger.KeyHeader) == "key-1" && n < 3 {
			panic(http.ErrAbortHandler) // on a connection that was used before
		}
		receipt(w, "paid")
	})
	f := New(&Plan{Orders: orders(2), Steps: []Step{{Copies: 1}, {Order: 1, Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	if sent := int(f.Sent.Load()); sent != 5 || arrived != sent {
		t.Errorf("sent %d, arrived %d", sent, arrived)
	}
}

func TestChangedPayload_Amount_DiffersAlone(t *testing.T) {
	var mu sync.Mutex
	bodies := map[string]bool{}
	url := server(t, func(w http.ResponseWriter, _ *http.Request, _ int, body string) {
		mu.Lock()
		bodies[strings.TrimSpace(body)] = true
		mu.Unlock()
		receipt(w, "paid")
	})
	f := New(&Plan{Orders: orders(1), Steps: []Step{{Copies: 1}, {Kind: Again, Copies: 2}, {Kind: Changed, Copies: 1}}}, url)
	f.Run(t.Context(), 1)
	if len(bodies) != 2 || !bodies[`{"order":"order-0","amount":100}`] || !bodies[`{"order":"order-0","amount":101}`] {
		t.Errorf("got %v", bodies)
	}
	if got := f.Outcomes()[0]; len(got.Acks) != 3 || got.Accepted != 1 {
		t.Errorf("got %+v", got)
	}
}
