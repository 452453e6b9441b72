package console

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/semel-go/semel/store"
)

// withoutScripts turns off the scripts of pages. Those of the test run all the same.
func withoutScripts(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return chromedp.Void{}, err
}

func TestConsole_ScriptsDisabled_CallIsFoundAndResolved(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	parked := payment("acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324")
	do(ctx, t, withoutScripts, chromedp.Navigate(s.url), shows("invoice-2026-1107"), open("In flight"), shows("No record fits"))
	do(ctx, t, chromedp.SetValue("#state", ""), chromedp.SendKeys("#key", parked.Short()), press("Search"), shows("8e03978e"), open("8e03978e"), shows("Facts"))
	if !evaluate[bool](ctx, t, `document.getElementById("updates").hidden`) {
		t.Error("the script of the page has run")
	}
	do(ctx, t, chromedp.SendKeys("#reason", "not in the ledger"), press("It did not happen"), shows("Resolved."))
	if got := s.state(t, parked); got != store.Released {
		t.Errorf("the payment is %v", got)
	}
}

// hostile is a name that tries to run a script, in an element and in an attribute.
const hostile = `"'><script>owned=1</script><img src=x onerror=owned=1><a href="javascript:owned=1">`

func TestConsole_HostileNames_AreInert(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	k := s.inDoubt(t, hostile, hostile)
	saga := s.stuckOrder(t, hostile)
	for _, page := range []string{
		s.url, s.url + "records", s.page(k), s.page(saga), s.url + "sagas?name=" + url.QueryEscape(hostile),
		s.url + "records?" + url.Values{"key": {hostile}, "tenant": {hostile}}.Encode(), s.url + "records?state=" + url.QueryEscape(hostile),
	} {
		do(ctx, t, chromedp.Navigate(page))
		if got := evaluate[string](ctx, t, `document.querySelector("main").innerHTML`); !strings.Contains(got, "&lt;script&gt;owned=1") {
			t.Errorf("%s does not show the name:\n%s", page, got)
		}
		if got := evaluate[int](ctx, t, `document.querySelectorAll("main :is(script, img, iframe, object), [onerror], a[href^=javascript]").length`); got != 0 {
			t.Errorf("%s: %d elements come from the name", page, got)
		}
		if evaluate[bool](ctx, t, `"owned" in window`) {
			t.Errorf("%s: the script of the name has run", page)
		}
	}
	do(ctx, t, chromedp.Navigate(s.page(k)), chromedp.SendKeys("#reason", hostile), press("It did not happen"), shows("Resolved."), shows("<img src=x onerror=owned=1>"))
	if got := s.state(t, k); got != store.Released || evaluate[bool](ctx, t, `"owned" in window`) {
		t.Errorf("the payment is %v", got)
	}
}

// unprotected serves the pages without the headers that tell the browser to refuse a frame,
// and removes the headers by which it names the site that sends a form.
func unprotected(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Origin")
		r.Header.Del("Sec-Fetch-Site")
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, r)
		for name, values := range answer.Header() {
			if name != "X-Frame-Options" && name != "Content-Security-Policy" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// A page of another site shows the console in a frame, and sends its form. The control is a
// console without its protection, at which both succeed.
func TestConsole_OtherSite_CanNeitherFrameItNorSendItsForm(t *testing.T) {
	s, ctx := newSite(t), browser(t)
	parked := payment("acct-301", "8e03978e-40d5-43dd-bc93-6894a57f9324")
	var rendered atomic.Int64 // times that a browser took the style sheet of a page
	console := func(pages http.Handler) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/style.css") {
				rendered.Add(1)
			}
			if strings.HasPrefix(r.URL.Path, "/ops/live/") { // it would not end
				w.WriteHeader(http.StatusNoContent)
				return
			}
			pages.ServeHTTP(w, r)
		})).URL + "/ops/"
	}
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		target := r.FormValue("target")
		_, _ = fmt.Fprintf(w, `<!doctype html><title>other</title><iframe src="%s"></iframe><form method="post" action="%s">`, html.EscapeString(target), html.EscapeString(target+r.FormValue("path")))
		for name, value := range map[string]string{
			"operation": parked.Operation, "tenant": parked.Tenant, "key": parked.Value, "fence": r.FormValue("fence"), "reason": "a prize", "act": "did-not-happen",
		} {
			_, _ = fmt.Fprintf(w, `<input type="hidden" name="%s" value="%s">`, name, html.EscapeString(value))
		}
		_, _ = fmt.Fprint(w, `<button>Take your prize</button></form>`)
	}))
	site := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) // another site, and not only another port
	f, err := s.store.Get(t.Context(), parked)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, target, says string
		want               store.State
		frame              bool
	}{
		{"protected", console(s.pages), "cross-origin request", store.Unknown, false},
		{"control", console(unprotected(s.pages)), "Resolved.", store.Released, true},
	} {
		rendered.Store(0)
		do(ctx, t, chromedp.Navigate(site+"/?"+url.Values{"target": {c.target}, "path": {strings.TrimPrefix(s.page(parked), s.url)}, "fence": {fmt.Sprint(f.Record.Fence)}}.Encode()))
		if got := rendered.Load() > 0; got != c.frame {
			t.Errorf("%s: shown in a frame: %v, want %v", c.name, got, c.frame)
		}
		do(ctx, t, chromedp.Click("button"), chromedp.WaitVisible(fmt.Sprintf("//body[contains(., %q)]", c.says)))
		if got := s.state(t, parked); got != c.want {
			t.Errorf("%s: the payment is %v, want %v", c.name, got, c.want)
		}
	}
}
