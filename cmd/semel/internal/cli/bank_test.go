//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// bank is a service whose effects are counted. It keeps a book in which it
// can look up what it has done, and refuses requests that it has said never
// to have had.
type bank struct {
	*httptest.Server
	slow time.Duration // at most, before and after the effect
	lag  time.Duration // before the effect of one request in a hundred

	busy    sync.WaitGroup // requests on their way, though their sender may be dead
	mu      sync.Mutex
	effects map[string]int
	answers map[string]string // the first for each key
	floor   map[string]uint64 // refuse lower fences
	asked   int
	refused int
}

func newBank(t testing.TB) *bank {
	l := &bank{effects: map[string]int{}, answers: map[string]string{}, floor: map[string]uint64{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", l.pay)
	mux.HandleFunc("POST /reconcile", l.reconcile)
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	return l
}

func (l *bank) pay(w http.ResponseWriter, r *http.Request) {
	l.busy.Add(1)
	defer l.busy.Done()
	_, _ = io.Copy(io.Discard, r.Body)
	l.pause()
	if l.lag > 0 && rand.N(100) == 0 {
		<-time.After(l.lag)
	}
	key := r.Header.Get("Idempotency-Key")
	fence, _ := strconv.ParseUint(r.Header.Get("Semel-Fence"), 10, 64)
	answer, ok := l.perform(key, fence)
	if !ok {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	l.pause()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/pay/"+key)
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// perform has the effect. Each answer is another, so that a second effect
// shows in a replay.
func (l *bank) perform(key string, fence uint64) (answer string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fence < l.floor[key] {
		l.refused++
		return "", false
	}
	l.effects[key]++
	answer = fmt.Sprintf(`{"key":%q,"effect":%d,"nonce":%d}`, key, l.effects[key], rand.Uint64())
	if l.effects[key] == 1 {
		l.answers[key] = answer
	}
	return answer, true
}

func (l *bank) pause() {
	if l.slow > 0 {
		<-time.After(rand.N(l.slow))
	}
}

// reconcile answers --reconcile-url.
func (l *bank) reconcile(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Key   string
		Fence uint64
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	a := map[string]any{"happened": false, "final": true}
	if answer, ok := l.answers[q.Key]; ok {
		a = map[string]any{"happened": true, "response": map[string]any{
			"status": 201, "headers": map[string]string{"Content-Type": "application/json", "Location": "/pay/" + q.Key}, "body": answer,
		}}
	} else {
		l.floor[q.Key] = q.Fence // a request that is still on its way comes too late
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// count returns how many keys had an effect, and how many more than one.
func (l *bank) count() (keys, twice int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.effects {
		if n > 1 {
			twice++
		}
	}
	return len(l.effects), twice
}

func (l *bank) of(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects[key]
}
