package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/semel-go/semel/store"
)

// release changes the state of a record that is in doubt.
func (s *site) release(t *testing.T, k store.Key) {
	t.Helper()
	f, err := s.store.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Swap(t.Context(), f.Record.Seen(), store.Proposal{Key: k, State: store.Released, Owner: store.Owner{7}, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// page is the address of a record's page.
func (s *site) page(k store.Key) string {
	return s.url + "record?" + url.Values{"operation": {k.Operation}, "tenant": {k.Tenant}, "key": {k.Value}}.Encode()
}

// says waits until the line about updates has a text.
func says(text string) step {
	return chromedp.WaitVisible(`//header[contains(., "` + text + `")]`)
}

// hasState waits until the page shows a record in a state.
func hasState(state string) step {
	return chromedp.WaitVisible(`//h1[contains(., "` + state + `")]`)
}

// wantState requires that the page still shows a record in a state.
func wantState(ctx context.Context, t *testing.T, state string) {
	t.Helper()
	if got := evaluate[string](ctx, t, `document.querySelector("h1").innerText`); !strings.Contains(got, state) {
		t.Errorf("the page shows %q, want %q", got, state)
	}
}

var withoutInvoice = chromedp.WaitVisible(`//main[contains(., "8e03978e") and not(contains(., "invoice-2026-1107"))]`)

func TestConsole_OpenPage_ShowsChangeByItself(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	do(ctx, t, chromedp.Navigate(s.url), shows("invoice-2026-1107"))
	s.release(t, payment("acct-117", "invoice-2026-1107"))
	do(ctx, t, withoutInvoice, says("Updated at"))
}

// While the console starts again, its gateway answers for it. A browser gives up a stream that
// gets such an answer.
func TestConsole_GatewayAnswersForConsole_PageSaysSoAndCatchesUp(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	var down atomic.Bool
	streams := make(chan struct{}, 100)
	gateway := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "502 Bad Gateway", http.StatusBadGateway)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/ops/live/") {
			streams <- struct{}{}
		}
		s.pages.ServeHTTP(w, r)
	}))
	do(ctx, t, chromedp.Navigate(gateway.URL+"/ops/"), shows("invoice-2026-1107"))
	<-streams
	down.Store(true)
	gateway.CloseClientConnections()
	do(ctx, t, says("Not up to date since"))
	s.release(t, payment("acct-117", "invoice-2026-1107"))
	down.Store(false)
	do(ctx, t, withoutInvoice, says("Updated at"))
}

func TestConsole_ReaderIsBusy_ChangeIsShownLater(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	invoice, parked := payment("acct-117", "invoice-2026-1107"), payment("acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324")

	do(ctx, t, chromedp.Navigate(s.page(invoice)), hasState("in doubt"))
	evaluate[chromedp.Void](ctx, t, `getSelection().selectAllChildren(document.querySelector("h1"))`)
	s.release(t, invoice)
	do(ctx, t, says("This page has changed"))
	wantState(ctx, t, "in doubt")
	evaluate[chromedp.Void](ctx, t, `getSelection().removeAllRanges()`)
	do(ctx, t, hasState("released"))

	// A part that is open is not filled in.
	do(ctx, t, chromedp.Navigate(s.page(parked)), hasState("in doubt"), chromedp.Click("summary"))
	s.release(t, parked)
	do(ctx, t, says("This page has changed"))
	wantState(ctx, t, "in doubt")
	evaluate[chromedp.Void](ctx, t, `document.activeElement.blur()`)
	do(ctx, t, hasState("released"))
}

// The page of a stuck compensation has an open part from the beginning.
func TestConsole_StuckCompensation_RefreshesUnlessPaused(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	k := s.stuckUndo(t, "t1")
	do(ctx, t, chromedp.Navigate(s.page(k)), hasState("stuck"), chromedp.WaitVisible("details[open]"), press("Pause updates"), says("Paused at"))
	s.release(t, k)
	wantState(ctx, t, "stuck")
	do(ctx, t, press("Resume updates"), hasState("waiting"))
}
