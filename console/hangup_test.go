package console_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// hangingUp is a store whose caller hangs up in the middle of an act. Like each store over a
// network, it does nothing when the context has ended.
type hangingUp struct {
	*memstore.Store
	hangUp func()
}

func (h hangingUp) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	h.hangUp()
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.Store.RecordStep(ctx, l, s)
}

func (h hangingUp) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	h.hangUp()
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	return h.Store.Swap(ctx, seen, p)
}

// A double click and a closed tab drop the request. A decision must not be cut in its middle.
func TestChange_BrowserHangsUp_ActIsWhole(t *testing.T) {
	st := memstore.New(nil)
	s := siteOver(t, st, console.Options{Operator: eve})
	s.seed()
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	page, err := console.New(hangingUp{st, hangUp}, &console.Options{Operator: eve})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		record record
		form   []string
	}{
		{stuck(), []string{"back", "not-happened", "charge"}},
		{named("POST /payments", "ann", "parked"), []string{"did-not-happen"}},
	} {
		r := s.form(c.record.path, s.formOf(c.record, c.form[0], c.form[1:]...)).WithContext(ctx)
		r.URL.Path, r.RequestURI = "/record", ""
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		if w.Code != http.StatusSeeOther {
			t.Errorf("%s: answered %d: %s", c.form[0], w.Code, w.Body)
		}
		if state := s.state(c.record.key).State; state != store.Released {
			t.Errorf("%s: the record is %v, want it released", c.form[0], state)
		}
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("nobody has hung up")
	}
}

// A gateway can name a tenant in Latin-1. A browser sends the character U+FFFD for such bytes of a
// field, but the address of the form has them.
func TestChange_TenantIsNoUTF8_IsFound(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = semel.Do(t.Context(), g, semel.Call{Operation: "charge", Tenant: "Jos\xe9", Key: "k", Payload: semel.NoPayload()},
		func(context.Context, *semel.Execution) (int, error) { return 0, errors.New("lost") })
	lost := named("charge", "Jos\xe9", "k")
	page := s.get(lost.path)
	s.want(page, http.StatusOK, `<form method="post"`)
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(page.body)[1]
	form := s.formOf(lost, "did-not-happen")
	form.Set("tenant", strings.ToValidUTF8(form.Get("tenant"), "\ufffd"))
	s.want(s.post(html.UnescapeString(action), form), http.StatusOK, "Resolved.")
	if state := s.state(lost.key).State; state != store.Released {
		t.Errorf("the record is %v", state)
	}
}
