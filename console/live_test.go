package console_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var liveAddress = regexp.MustCompile(`data-live="([^"]*)"`)

// live is the address of a page's events, as the page has it.
func (s *site) live(path string) string {
	s.Helper()
	m := liveAddress.FindStringSubmatch(s.get(path).body)
	if m == nil {
		s.Fatalf("%s: the page has no address of its events", path)
	}
	return html.UnescapeString(m[1])
}

// listen opens a page's events.
func (s *site) listen(address string) *bufio.Scanner {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	s.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+address, nil)
	if err != nil {
		s.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewScanner(resp.Body)
}

// release changes a record.
func (s *site) release(k store.Key) {
	s.Helper()
	before := s.state(k)
	if _, err := s.store.Swap(s.Context(), before.Seen(), store.Proposal{Key: k, State: store.Released, Owner: store.Owner{7}}); err != nil {
		s.Fatal(err)
	}
}

// wantEvent reads a stream up to its next event.
func (s *site) wantEvent(lines *bufio.Scanner) {
	s.Helper()
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	s.Fatalf("the stream ended without an event: %v", lines.Err())
}

func (s *site) wantFirst(lines *bufio.Scanner, line string) {
	s.Helper()
	if !lines.Scan() || lines.Text() != line {
		s.Fatalf("the first line is %q, want %q", lines.Text(), line)
	}
}

func TestLive_RecordChanges_SendsEvent(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	parked := named("POST /payments", "ann", "parked")
	lines := s.listen(s.live(parked.path))
	s.wantFirst(lines, ": ready")
	s.release(parked.key)
	s.wantEvent(lines)
}

// A page is compared with the state that it shows, and not with that at the start of the
// stream: at the first connection, and at each later one.
func TestLive_ChangedBeforeTheStream_SendsEventAtOnce(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	for _, r := range []record{named("POST /payments", "ann", "parked"), {key: named("POST /payments", "ann", hostile).key}} { // a record, and the overview
		address := s.live(r.path)
		s.release(r.key)
		s.wantFirst(s.listen(address), "event: changed")
		s.wantFirst(s.listen(s.live(r.path)), ": ready") // the page has been read again
	}
}

// A process renews its lease every few seconds. The page would be replaced each time.
func TestLive_LeaseIsRenewed_IsNoChange(t *testing.T) {
	s := siteOver(t, memstore.New(nil), console.Options{})
	k := named("charge", "ann", "running")
	f, err := s.store.Claim(t.Context(), store.Proposal{Key: k.key, State: store.Processing, Owner: store.Owner{9}, Attempt: 1, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	before := s.live(k.path)
	if errs, err := s.store.Renew(t.Context(), []store.Lease{f.Record.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if after := s.live(k.path); after != before {
		t.Errorf("the state was %s, and is %s", before, after)
	}
	if err := s.store.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	if after := s.live(k.path); after == before {
		t.Error("a call that comes into doubt is no change")
	}
}

// So a page that was opened during an outage shows the record when the store is back.
func TestLive_PageWithError_SendsEventWhenItIsOver(t *testing.T) {
	s := siteOver(t, memstore.New(nil), console.Options{})
	k := named("charge", "ann", "later")
	lines := s.listen(s.live(k.path))
	s.wantFirst(lines, ": ready")
	if _, err := s.store.Claim(t.Context(), store.Proposal{Key: k.key, State: store.Processing, Owner: store.Owner{9}, Attempt: 1, Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s.wantEvent(lines)
}

// HEAD asks for the header, and the stream has no end.
func TestLive_Head_Ends(t *testing.T) {
	page, err := console.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodHead, "/live/", nil))
	if ctx.Err() != nil || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("the answer is %v, after %v", w.Header(), ctx.Err())
	}
}
