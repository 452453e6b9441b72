package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestStream_Flush_StoresTombstoneFirst(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		more := make(chan struct{})
		site := newSite(t, setup{http2: http2}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/payments/7")
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "one ")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
			<-more
			_, _ = io.WriteString(w, "two")
		})
		resp, err := site.client.Do(site.request("k", "hello"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		first := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "one " {
			t.Fatalf("got %q, %v", first, err)
		}
		during := site.post("k", "hello") // the tombstone is already stored
		close(more)
		rest, err := io.ReadAll(resp.Body)
		if err != nil || string(rest) != "two" {
			t.Errorf("got %q, %v", rest, err)
		}
		for _, a := range []answer{during, site.post("k", "hello")} {
			site.want(a, 201, "")
			if a.Header.Get("Semel-Outcome") != "not-kept" || a.Header.Get("Location") != "/payments/7" || !a.replayed() || a.Header.Get("Content-Type") != "" {
				t.Errorf("the tombstone has headers %v", a.Header)
			}
		}
		site.wantRuns(1)
	})
}

func TestStream_OverMaxResponse_IsNotKept(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		const limit = 1000
		for size, kept := range map[int]bool{limit: true, limit + 1: false, 300 * limit: false} {
			site := newSite(t, setup{http2: http2, options: semelhttp.Options{MaxResponse: limit}}, func(w http.ResponseWriter, r *http.Request) {
				for range size / 10 {
					_, _ = io.WriteString(w, "0123456789")
				}
				_, _ = io.WriteString(w, "0123456789"[:size%10])
			})
			if a := site.post("k", "hello"); len(a.body) != size || a.err != nil {
				t.Errorf("%d bytes: the first caller got %d, %v", size, len(a.body), a.err)
			}
			a := site.post("k", "hello")
			if gone := a.Header.Get("Semel-Outcome") == "not-kept"; gone == kept || kept && len(a.body) != size || !a.replayed() {
				t.Errorf("%d bytes: the duplicate got %d, %v", size, len(a.body), a.Header)
			}
			site.wantRuns(1)
		}
	})
}

func TestStream_OverGuardLimit_SentAndNotKept(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{MaxOutcome: 100}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, strings.Repeat("x", 200))
	})
	if a := site.post("k", "hello"); len(a.body) != 200 {
		t.Errorf("the first caller got %d bytes", len(a.body))
	}
	if a := site.post("k", "hello"); a.body != "" || a.Header.Get("Semel-Outcome") != "not-kept" || a.Header.Get("ETag") != "" {
		t.Errorf("the duplicate got %q, %v", a.body, a.Header)
	}
}

func TestHoldFlush_Flush_AnswerIsKept(t *testing.T) {
	site := newSite(t, setup{options: semelhttp.Options{HoldFlush: true}}, func(w http.ResponseWriter, r *http.Request) {
		for _, s := range []string{"a", "b", "c"} {
			w.(http.Flusher).Flush()
			w.WriteHeader(404) // too late, as with a bare handler
			_, _ = io.WriteString(w, s)
		}
	})
	site.want(site.post("k", "hello"), 200, "abc")
	site.want(site.post("k", "hello"), 200, "abc")
	site.wantRuns(1)
}

func TestStream_LeaseLost_IsRefused(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter) error{
		"flush":    func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
		"overflow": func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 2000)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			st := &faultyStore{Store: memstore.New(nil), settle: func(store.Settlement) error { return store.ErrLeaseLost }}
			var first, then error
			site := newSite(t, setup{store: st, options: semelhttp.Options{MaxResponse: 1000}}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Secret", "1")
				_, _ = io.WriteString(w, "one")
				first = write(w)
				_, then = io.WriteString(w, "two")
			})
			a := site.post("k", "hello")
			site.want(a, 409, semelhttp.CodeLeaseLost)
			if !errors.Is(first, semel.ErrLeaseLost) || !errors.Is(then, semel.ErrLeaseLost) {
				t.Errorf("the handler's writes got %v and %v", first, then)
			}
			if a.Header.Get("X-Secret") != "" || a.Header.Get("Retry-After") != "1" {
				t.Errorf("the answer has headers %v", a.Header)
			}
		})
	}
}

func TestAnswer_LeaseLost_IsDropped(t *testing.T) {
	st := &faultyStore{Store: memstore.New(nil), settle: func(store.Settlement) error { return store.ErrLeaseLost }}
	for _, status := range []int{201, 404, 401, 503} {
		site := newSite(t, setup{store: st}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Secret", "1")
			w.WriteHeader(status)
		})
		a := site.post(fmt.Sprint("k", status), "hello")
		site.want(a, 409, semelhttp.CodeLeaseLost)
		if a.Header.Get("X-Secret") != "" {
			t.Errorf("the answer has headers %v", a.Header)
		}
	}
}

func TestAnswer_StoreFails_SentAsNotStored(t *testing.T) {
	down := errors.New("down")
	for name, flush := range map[string]bool{"buffered": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			st := &faultyStore{Store: memstore.New(nil), settle: func(store.Settlement) error { return down }}
			site := newSite(t, setup{store: st, guard: semel.Options{SettleTimeout: 1e6}}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "done")
				if flush {
					w.(http.Flusher).Flush()
				}
			})
			a := site.post("k", "hello")
			site.want(a, 200, "done")
			if a.Header.Get("Semel-Outcome") != "not-stored" {
				t.Errorf("the answer has headers %v", a.Header)
			}
		})
	}
}

func TestStream_Unprotected_IsMarked(t *testing.T) {
	st := &faultyStore{Store: memstore.New(nil), claim: func(store.Proposal) error { return errors.New("down") }}
	for name, flush := range map[string]bool{"buffered": false, "streamed": true} {
		t.Run(name, func(t *testing.T) {
			var streamed bool
			site := newSite(t, setup{store: st, guard: semel.Options{UnprotectedOnOutage: true}}, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(503) // with any status
				_, _ = io.WriteString(w, "done")
				if flush {
					streamed = http.NewResponseController(w).Flush() == nil
				}
			})
			a := site.post("k", "hello")
			site.want(a, 503, "done")
			if a.Header.Get("Semel-Outcome") != "unprotected" || streamed != flush {
				t.Errorf("streamed is %v, the answer has headers %v", streamed, a.Header)
			}
		})
	}
}

func TestStream_StatusNotKept_StoresNothing(t *testing.T) {
	var settled atomic.Int64
	st := &faultyStore{Store: memstore.New(nil), settle: func(s store.Settlement) error {
		if s.State == store.Completed {
			settled.Add(1)
		}
		return nil
	}}
	site := newSite(t, setup{store: st, guard: semel.Options{OnDoubt: semel.Park}}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(502)
		_, _ = io.WriteString(w, "bad")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, " gateway")
	})
	a := site.post("k", "hello")
	site.want(a, 502, "bad gateway")
	if a.Header.Get("Semel-Outcome") != "unknown" || settled.Load() != 0 {
		t.Errorf("completed %d times, headers %v", settled.Load(), a.Header)
	}
	site.want(site.post("k", "hello"), 409, semelhttp.CodeOutcomeUnknown)
}

func TestStream_InTransaction_IsBuffered(t *testing.T) {
	st := memstore.New(nil)
	var committed atomic.Bool
	atomicRunner := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		res, err := driver.RunIn(ctx, g, memTx{st}, call, fn)
		committed.Store(true)
		return res, err
	})
	site := newSite(t, setup{runner: atomicRunner.with(newGuard(t, st, nil)), options: semelhttp.Options{MaxResponse: 10}}, func(w http.ResponseWriter, r *http.Request) {
		for range 5 {
			_, _ = io.WriteString(w, "0123456789")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
			if committed.Load() {
				t.Error("committed before the handler returned")
			}
		}
	})
	want := strings.Repeat("0123456789", 5)
	site.want(site.post("k", "hello"), 200, want)
	site.want(site.post("k", "hello"), 200, want)
	site.wantRuns(1)
}

func TestAnswer_CommitFails_IsDropped(t *testing.T) {
	st := memstore.New(nil)
	atomicRunner := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		if _, err := driver.RunIn(ctx, g, memTx{st}, call, fn); err != nil {
			return semel.Result{}, err
		}
		return semel.Result{}, &semel.Error{Reason: semel.ErrUnavailable, Cause: errors.New("commit: connection reset")}
	})
	site := newSite(t, setup{runner: atomicRunner.with(newGuard(t, st, nil))}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/payments/7")
		w.WriteHeader(201)
	})
	a := site.post("k", "hello")
	site.want(a, 503, semelhttp.CodeStoreUnavailable)
	if a.Header.Get("Location") != "" {
		t.Errorf("the answer has headers %v", a.Header)
	}
}

func TestStream_Rerun_IsBuffered(t *testing.T) {
	site := newSite(t, setup{guard: semel.Options{Rerun: true}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "fresh ")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "data")
	})
	for range 4 {
		a := site.post("k", "hello")
		site.want(a, 200, "fresh data")
		if a.replayed() {
			t.Error("marked as a replay")
		}
	}
	site.wantRuns(4)
}

// memTx is a transaction without rollback.
type memTx struct{ *memstore.Store }

func (memTx) Nested(ctx context.Context, fn func() error) error { return fn() }

func TestStream_RunnerRepeatsHandler_Fails(t *testing.T) {
	twice := runnerFunc(func(ctx context.Context, g *semel.Guard, call semel.Call, fn semel.Handler) (semel.Result, error) {
		return g.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if _, err := fn(ctx, x); err != nil {
				return store.Outcome{}, err
			}
			return fn(ctx, x)
		})
	})
	site := newSite(t, setup{runner: twice.with(newGuard(t, nil, nil))}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "once")
		w.(http.Flusher).Flush()
	})
	site.want(site.post("k", "hello"), 200, "once")
	site.wantRuns(1)
}

func TestAnswer_HandlerCompletes_OutcomeIsKept(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, r *http.Request) {
		run, _ := semel.FromContext(r.Context())
		if err := driver.Complete(r.Context(), run, store.Outcome{Code: 202, Body: []byte("summary")}); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "a long story")
		w.(http.Flusher).Flush()
	})
	a := site.post("k", "hello")
	site.want(a, 200, "a long story")
	if a.Header.Get("Semel-Outcome") != "" {
		t.Errorf("headers %v", a.Header)
	}
	site.want(site.post("k", "hello"), 202, "summary")
	site.wantRuns(1)
}

// noFlusher hides the optional methods of the server's writer.
type noFlusher struct{ http.ResponseWriter }

func TestFlush_ServerCannotFlush_ChangesNothing(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(noFlusher{w}, r) })
	}
	site := newSite(t, setup{outer: outer}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "kept")
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flush: %v", err)
		}
	})
	for range 2 {
		site.want(site.post("k", "hello"), 200, "kept")
	}
	site.wantRuns(1)
}
