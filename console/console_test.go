package console_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

func TestOverview_ShowsWhatIsInDoubt(t *testing.T) {
	s := newSite(t, console.Options{})
	page := s.get("")
	s.want(page, http.StatusOK, "parked", "the answer of the bank was lost", "Stuck sagas", ">o1<", "read-only")
	for _, text := range []string{">done<", ">failed<"} {
		if strings.Contains(page.body, text) {
			t.Errorf("the overview shows %s, which needs nobody", text)
		}
	}
}

func TestOverview_EmptyStore_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{})
	for f, err := range s.store.List(t.Context(), store.Filter{States: []store.State{store.Unknown}}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.Swap(t.Context(), f.Record.Seen(), store.Proposal{Key: f.Record.Key, State: store.Released, Owner: store.Owner{7}}); err != nil {
			t.Fatal(err)
		}
	}
	s.want(s.get(""), http.StatusOK, "No call is in doubt", "No saga is stuck")
}

// Many parked calls must not hide a stuck saga.
func TestOverview_MoreCallsThanOnePage_SagaIsShown(t *testing.T) {
	s := newSite(t, console.Options{})
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		_ = semel.Once(t.Context(), g, semel.Call{Operation: "charge", Tenant: "ann", Key: fmt.Sprint("flood-", n), Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) error { return errors.New("lost") })
	}
	page := s.get("")
	s.want(page, http.StatusOK, ">o1<", `Calls in doubt <span class="count">100&#43;</span>`, `Stuck sagas <span class="count">1</span>`)
	if n := strings.Count(page.body, "Only the first 100 are shown"); n != 1 {
		t.Errorf("the page says %d times that a list is cut", n)
	}
}

// Every address on every page leads to a page, below whatever path the console is.
func TestLinks_BelowAnyPath_Work(t *testing.T) {
	s := newSite(t, console.Options{Operator: func(*http.Request) string { return "eve" }, Sagas: []string{"order"}})
	seen, queue := map[string]bool{}, []string{s.url}
	for len(queue) > 0 {
		address := queue[0]
		queue = queue[1:]
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		page := s.get(strings.TrimPrefix(address, s.url))
		s.want(page, http.StatusOK)
		if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(page.body, -1) {
			to, err := base.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatalf("%s: the address %q: %v", address, m[1], err)
			}
			to.Fragment = ""
			if !strings.HasPrefix(to.String(), s.url) {
				t.Fatalf("%s: the address %q leads out of the console, to %s", address, m[1], to)
			}
			if !seen[to.String()] {
				seen[to.String()] = true
				queue = append(queue, to.String())
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %d addresses were found", len(seen))
	}
}

func TestRecords_FilterAndSearch(t *testing.T) {
	s := newSite(t, console.Options{})
	parked := named("POST /payments", "ann", "parked")
	for path, want := range map[string]struct{ has, hasNot string }{
		"records?state=failed":                                        {">failed<", ">parked<"},
		"records?operation=charge":                                    {">call<", ">parked<"},
		"records?tenant=ann":                                          {">parked<", ">call<"},
		"records?key=parked":                                          {">parked<", ">done<"},
		"records?key=" + parked.key.Short():                           {">parked<", ">done<"},
		"records?operation=POST+%2Fpayments&tenant=ann&key=done":      {">done<", ">parked<"},
		"records?key=nobody":                                          {"No record fits", ">parked<"},
		"records?operation=charge&tenant=ann&key=parked&state=failed": {"No record fits", ">parked<"},
	} {
		page := s.get(path)
		s.want(page, http.StatusOK, want.has)
		if strings.Contains(page.body, want.hasNot) {
			t.Errorf("%s: shows %s", path, want.hasNot)
		}
	}
	gone := store.Proposal{Key: store.Key{Operation: "old", Tenant: "ann", Value: "over"}, State: store.Completed, Owner: store.Owner{1}, Keep: time.Nanosecond}
	if _, err := s.store.Claim(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	page := s.get("records?state=expired")
	s.want(page, http.StatusOK, ">over<", `<option selected value="expired">expired</option>`)
	if strings.Contains(page.body, ">done<") {
		t.Errorf("records that have not expired: %s", page.body)
	}
	s.want(s.get("records?state=expired&key=done"), http.StatusOK, "No record fits")
	s.want(s.get("records?state=lost"), http.StatusBadRequest, "There is no state &#34;lost&#34;; choose started, processing, released, completed, failed, unknown, expired; parked is the same as unknown.")
}

// A search finds a hashed record by the tenant and key that clients send, and by what
// pages and links show.
func TestRecords_HashKeys_FoundByWhatClientsSend(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	s := newSite(t, console.Options{HashKeys: secret})
	g, err := semel.New(s.store, &semel.Options{HashKeys: secret})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "charge", Tenant: "bob", Key: "k1", Payload: semel.NoPayload()}
	if err := semel.Once(t.Context(), g, call, func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	k := store.Key{Operation: "charge", Tenant: "bob", Value: "k1"}.Hashed(secret)
	for path, found := range map[string]bool{
		"records?operation=charge&tenant=bob&key=k1":                      true,
		"records?tenant=bob&key=k1":                                       true,
		"records?tenant=bob":                                              true,
		"records?key=" + k.Short():                                        true,
		"records?tenant=bob&key=" + k.Short():                             true,
		"records?key=" + strings.ToUpper(k.Short()):                       true,
		"records?key=" + k.Value:                                          true,
		"records?operation=charge&tenant=" + k.Tenant + "&key=" + k.Value: true,
		"records?operation=charge&tenant=" + k.Tenant:                     true,
		"records?operation=charge&tenant=ann&key=k1":                      false,
		"records?operation=charge&key=k1":                                 false,
	} {
		page := s.get(path)
		s.want(page, http.StatusOK)
		if strings.Contains(page.body, ">"+k.Value+"<") != found {
			t.Errorf("%s: found is %v, want %v", path, !found, found)
		}
	}
	s.want(s.get(named(k.Operation, k.Tenant, k.Value).path), http.StatusOK, "records?operation=charge&amp;tenant="+k.Tenant)
}

func TestRecord_Bodies_OnlyIfAllowed(t *testing.T) {
	done := named("POST /payments", "ann", "done")
	for _, allowed := range []bool{false, true} {
		s := newSite(t, console.Options{ShowBodies: allowed})
		page := s.get(done.path)
		s.want(page, http.StatusOK, "201 Created", "completed")
		if strings.Contains(page.body, "canary&#34;") != allowed || strings.Contains(page.body, "Location: /p/1") != allowed {
			t.Errorf("allowed is %v, and the page is\n%s", allowed, page.body)
		}
		if strings.Contains(page.body, "canary-cookie") {
			t.Error("a cookie is shown")
		}
	}
}

func TestRecord_Unknown_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{})
	s.want(s.get(named("charge", "ann", "none").path), http.StatusNotFound, "There is no record with this key. It may have expired, or have been erased: the audit trail of semel erase says so.")
	s.want(s.get("record"), http.StatusBadRequest, "needs an operation and a key")
	s.want(s.get("outbox"), http.StatusNotFound, "shows no outbox")
	s.want(s.get("none"), http.StatusNotFound)
}

func TestRecord_ClaimedAgain_ShowsFormerOwners(t *testing.T) {
	s := newSite(t, console.Options{})
	k := named("charge", "ann", "again")
	g, err := semel.New(s.store, &semel.Options{Holder: hostile})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "charge", Tenant: "ann", Key: "again", Payload: semel.NoPayload()}
	for n := range 10 {
		_, _ = g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("lost")
		})
		page := s.get(k.path)
		if strings.Contains(page.body, "Former owners") != (n > 0) || strings.Contains(page.body, "Only the last 8") != (n >= 8) || strings.Contains(page.body, "<script>alert") {
			t.Fatalf("after %d attempts the page is\n%s", n+1, page.body)
		}
		if shown := strings.Count(page.body, "released, then claimed again"); shown != min(n, 8) {
			t.Errorf("after %d attempts %d former owners are shown", n+1, shown)
		}
	}
	o := s.state(k.key).FormerOwners[7]
	s.want(s.get(k.path), http.StatusOK, fmt.Sprintf("<code>%x</code>", o.Owner), fmt.Sprintf("<code>%d</code>", o.Fence), `data-label="Attempt" class="number">9<`)
}

// A code in the record is shown in words, with what to do about it.
func TestRecord_CodeOfError_ShownInWords(t *testing.T) {
	s := newSite(t, console.Options{})
	p := store.Proposal{Key: store.Key{Operation: "charge", Tenant: "ann", Value: "coded"}, State: store.Processing, Owner: store.Owner{9}, Attempt: 1, Lease: time.Hour}
	f, err := s.store.Claim(t.Context(), p)
	if err == nil {
		err = s.store.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "upstream_lost"})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.want(s.get(named("charge", "ann", "coded").path), http.StatusOK, "no whole answer came (upstream_lost)", "What to do: look in the service")
	s.want(s.get("records?operation=charge"), http.StatusOK, "no whole answer came (upstream_lost)")
}

func TestSagas_List(t *testing.T) {
	s := newSite(t, console.Options{Sagas: []string{"order"}})
	s.want(s.get("sagas"), http.StatusOK, ">o1<", "stuck", `data-label="Due"><span class="quiet">–</span></td>`)
	s.want(s.get("sagas?name=trip"), http.StatusOK, "No saga of “trip” is under way")
	s.want(s.get(stuck().path), http.StatusOK, "The saga was started", "Step reserve", "Step charge began", "stuck")
}

func TestNew_MistakesInOptions(t *testing.T) {
	s := newSite(t, console.Options{})
	if _, err := console.New(nil, nil); err == nil {
		t.Error("a nil store is accepted")
	}
	if _, err := console.New(s.store, &console.Options{Retention: -1}); err == nil || !strings.Contains(err.Error(), "Retention") {
		t.Errorf("a negative Retention: %v", err)
	}
	if _, err := console.New(struct{ store.Store }{}, nil); err == nil || !strings.Contains(err.Error(), "cannot list") {
		t.Errorf("a store that cannot list: %v", err)
	}
}

// A console without the keys says that an answer is encrypted, instead of its bytes.
func TestRecord_Encrypted_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{ShowBodies: true})
	k := store.Key{Operation: "POST /payments", Tenant: "ann", Value: "sealed"}
	o := store.Outcome{Code: 201, Codec: encrypted.Codec, Body: []byte("\x01\x01a0000")}
	if _, err := s.store.Claim(t.Context(), store.Proposal{Key: k, State: store.Completed, Owner: store.Owner{9}, Keep: time.Hour, Outcome: o}); err != nil {
		t.Fatal(err)
	}
	page := s.get("record?operation=POST+%2Fpayments&tenant=ann&key=sealed")
	s.want(page, http.StatusOK, "7 bytes, encrypted")
	if strings.Contains(page.body, "01016130") {
		t.Error("the page shows the ciphertext")
	}
}
