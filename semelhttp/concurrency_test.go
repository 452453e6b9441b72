package semelhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// sendConcurrently sends n requests with one key at the same time and counts the
// answers. The handler returns when all other requests are answered or wait.
func sendConcurrently(t *testing.T, n int, wait time.Duration) (site *testSite, answers map[string]int, replays int) {
	t.Helper()
	release := make(chan struct{})
	var arrived atomic.Int64
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrived.Add(1); h.ServeHTTP(w, r) })
	}
	site = newSite(t, setup{options: semelhttp.Options{Wait: wait}, guard: semel.Options{MaxWaiters: n}, outer: outer}, func(w http.ResponseWriter, r *http.Request) {
		<-release
		w.WriteHeader(201)
		_, _ = io.WriteString(w, "receipt "+strconv.FormatInt(site.runs.Load(), 10))
	})
	site.client.Transport = &http.Transport{MaxConnsPerHost: n}
	var mu sync.Mutex
	answers = map[string]int{}
	answered := make(chan struct{}, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			a := site.post("k", "hello")
			mu.Lock()
			defer mu.Unlock()
			if a.replayed() {
				replays++
			}
			if a.StatusCode != 201 {
				a.body = a.code()
				if a.Header.Get("Retry-After") == "" {
					t.Errorf("%d %s has no Retry-After", a.StatusCode, a.body)
				}
			}
			answers[strconv.Itoa(a.StatusCode)+" "+a.body]++
			answered <- struct{}{}
		})
	}
	if wait > 0 {
		poll(t, "all requests to arrive", func() bool { return arrived.Load() == int64(n) })
	} else {
		for range n - 1 {
			receive(t, answered, "a refusal")
		}
	}
	close(release)
	wg.Wait()
	return site, answers, replays
}

func TestMiddleware_ThousandRequestsOneKey_OneRuns(t *testing.T) {
	const n = 1000
	t.Run("the others wait", func(t *testing.T) {
		site, answers, replays := sendConcurrently(t, n, waitLimit)
		site.wantRuns(1)
		if answers["201 receipt 1"] != n || replays != n-1 {
			t.Errorf("answers are %v, %d of them replays", answers, replays)
		}
	})
	t.Run("the others are told to come again", func(t *testing.T) {
		site, answers, replays := sendConcurrently(t, n, 0)
		site.wantRuns(1)
		if answers["201 receipt 1"] != 1 || answers["409 in_progress"] != n-1 || replays != 0 {
			t.Errorf("answers are %v, %d of them replays", answers, replays)
		}
	})
}

func TestMiddleware_PreferWait_OnlyShortensWait(t *testing.T) {
	release := make(chan struct{})
	running := make(chan struct{}, 1)
	site := newSite(t, setup{options: semelhttp.Options{Wait: waitLimit, BusyStatus: 429}}, func(w http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-release
		w.WriteHeader(200)
	})
	first := make(chan answer, 1)
	go func() { first <- site.post("k", "hello") }()
	receive(t, running, "the first run")
	r := site.request("k", "hello")
	r.Header.Set("Prefer", "respond-async, wait=0")
	site.want(site.do(r), 429, semelhttp.CodeInProgress)
	close(release)
	site.want(receive(t, first, "the first answer"), 200, "")
}

func TestMiddleware_AttemptFailed_WaiterGetsProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), byAccount, &semelhttp.Options{Operation: paymentsOperation, Wait: waitLimit})
		if err != nil {
			t.Fatal(err)
		}
		release, runs := make(chan struct{}), 0
		h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs++
			<-release
			w.WriteHeader(500)
		}))
		first, second := make(chan int, 1), make(chan *httptest.ResponseRecorder, 1)
		go func() { first <- serve(t, t.Context(), h, "k").Code }()
		synctest.Wait() // it runs
		go func() { second <- serve(t, t.Context(), h, "k") }()
		synctest.Wait() // it waits
		close(release)
		if code := <-first; code != 500 {
			t.Errorf("the first got %d", code)
		}
		if w := <-second; w.Code != 503 || !strings.Contains(w.Body.String(), semelhttp.CodeAttemptFailed) || w.Header().Get("Retry-After") == "" {
			t.Errorf("the waiter got %d %s, %v", w.Code, w.Body, w.Header())
		}
		if code := serve(t, t.Context(), h, "k").Code; code != 500 || runs != 2 {
			t.Errorf("the next got %d after %d runs", code, runs)
		}
	})
}

func TestMiddleware_WaitOver_WaiterGetsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), byAccount, &semelhttp.Options{Operation: paymentsOperation, Wait: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
		first := make(chan int, 1)
		go func() { first <- serve(t, t.Context(), h, "k").Code }()
		synctest.Wait()
		start := time.Now()
		w := serve(t, t.Context(), h, "k")
		if took := time.Since(start); w.Code != 409 || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the waiter got %d after %v", w.Code, took)
		}
		close(release)
		<-first
	})
}
