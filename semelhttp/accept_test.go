package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// desk accepts requests and remembers their tokens.
type acceptSite struct {
	*testSite
	guard *semel.Guard
	mu    sync.Mutex
	token []string
}

func newAcceptSite(t *testing.T, st store.Store, o *semelhttp.Options) *acceptSite {
	t.Helper()
	d := &acceptSite{testSite: &testSite{t: t}, guard: newGuard(t, st, nil)}
	o = payments(o)
	h, err := semelhttp.Accept(d.guard, byAccount, func(w http.ResponseWriter, r *http.Request, ticket semel.Ticket) {
		d.runs.Add(1)
		if ticket.Result != nil {
			_, _ = w.Write(ticket.Result.Body)
			return
		}
		b, err := io.ReadAll(r.Body)
		if err != nil || int64(len(b)) != r.ContentLength {
			t.Errorf("the body is %q, %v", b, err)
		}
		d.mu.Lock()
		d.token = append(d.token, ticket.Token)
		d.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, "accepted %s", b)
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	d.serve(h, false)
	return d
}

func (d *acceptSite) runWork(fn func() error) error {
	call, err := d.guard.Redeem(d.token[len(d.token)-1])
	if err != nil {
		return err
	}
	_, err = d.guard.Run(d.t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte("report")}, fn()
	})
	return err
}

func TestAccept_TokenSentAndWorkDone_DuplicateGetsResult(t *testing.T) {
	d := newAcceptSite(t, nil, nil)
	first, again := d.post("k", "hello"), d.post("k", "hello")
	d.want(first, 202, "accepted hello")
	d.want(again, 202, "accepted hello")
	if first.replayed() || !again.replayed() {
		t.Errorf("marked as replays: %v, %v", first.replayed(), again.replayed())
	}
	if d.token[0] != d.token[1] || d.token[0] == "" {
		t.Errorf("the tokens are %q", d.token)
	}
	d.want(d.post("k", "other"), 422, semelhttp.CodePayloadMismatch)
	d.want(d.post("", "hello"), 400, semelhttp.CodeKeyMissing)
	if err := d.runWork(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	done := d.post("k", "hello")
	d.want(done, 200, "report")
	if !done.replayed() {
		t.Error("the result is not marked as a replay")
	}
}

func TestAccept_WorkerFailed_IsProblem(t *testing.T) {
	d := newAcceptSite(t, nil, nil)
	d.post("k", "hello")
	if err := d.runWork(func() error { return semel.Final(errors.New("secret")) }); err == nil {
		t.Fatal("the worker's failure was lost")
	}
	a := d.post("k", "hello")
	d.want(a, 500, semelhttp.CodeFailed)
	if strings.Contains(a.body, "secret") || !a.replayed() {
		t.Errorf("got %s, %v", a.body, a.Header)
	}
}

func TestAccept_AuthorizeFails_HidesResult(t *testing.T) {
	var denied error
	d := newAcceptSite(t, nil, &semelhttp.Options{Authorize: func(*http.Request) error { return denied }})
	d.post("k", "hello")
	denied = errors.New("no more")
	d.want(d.post("k", "hello"), 202, "accepted hello") // no result to hide yet
	if err := d.runWork(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	d.want(d.post("k", "hello"), 403, semelhttp.CodeReplayForbidden)
	denied = nil
	d.want(d.post("k", "hello"), 200, "report")
}

func TestAccept_StoreDown_IsRefused(t *testing.T) {
	st := &faultyStore{Store: memstore.New(nil), claim: func(store.Proposal) error { return errors.New("down") }}
	d := newAcceptSite(t, st, nil)
	a := d.post("k", "hello")
	d.want(a, 503, semelhttp.CodeStoreUnavailable)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	d.wantRuns(0)
}

func TestAccept_BodyOverLimit_IsRefused(t *testing.T) {
	dir := t.TempDir()
	d := newAcceptSite(t, nil, &semelhttp.Options{MaxBody: 100_000, TempDir: dir})
	d.want(d.post("k", strings.Repeat("x", 100_001)), 413, semelhttp.CodeBodyTooLarge)
	body := strings.Repeat("x", 100_000)
	d.want(d.post("k", body), 202, "accepted "+body)
	wantEmpty(t, dir)
}

func TestAccept_ResultNotKept_AnswersTombstone(t *testing.T) {
	d := &acceptSite{testSite: &testSite{t: t}, guard: newGuard(t, nil, &semel.Options{MaxOutcome: 3})}
	h, err := semelhttp.Accept(d.guard, byAccount, func(w http.ResponseWriter, r *http.Request, ticket semel.Ticket) {
		d.runs.Add(1)
		d.token = append(d.token, ticket.Token)
	}, payments(nil))
	if err != nil {
		t.Fatal(err)
	}
	d.serve(h, false)
	d.want(d.post("k", "hello"), 200, "")
	if err := d.runWork(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	a := d.post("k", "hello")
	d.want(a, 200, "")
	if a.Header.Get("Semel-Outcome") != "not-kept" || !a.replayed() {
		t.Errorf("headers %v", a.Header)
	}
	d.wantRuns(1)
}

func TestAccept_TokenNotSent_ClientRepeats(t *testing.T) {
	d, calls := &testSite{t: t}, 0
	h, err := semelhttp.Accept(newGuard(t, nil, nil), byAccount, func(w http.ResponseWriter, r *http.Request, ticket semel.Ticket) {
		if _, ok := w.(http.Flusher); !ok {
			t.Error("a duplicate's answer cannot be flushed")
		}
		if calls++; calls < 3 {
			http.Error(w, "the queue is down", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}, payments(nil))
	if err != nil {
		t.Fatal(err)
	}
	d.serve(h, false)
	d.client = newClient(t, d.client.Transport, &semelhttp.TransportOptions{Backoff: time.Millisecond})
	a := d.post("k", "hello")
	d.want(a, 202, "")
	if calls != 3 || !a.replayed() {
		t.Errorf("it was tried to hand the token on %d times, and the answer is marked: %v", calls, a.replayed())
	}
}
