package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
)

// The title says that there is a mistake, and the field refers to its description.
func TestChange_Mistake_MarksTheField(t *testing.T) {
	box, position := oneMessage(t)
	s := newSite(t, console.Options{Operator: eve, Outbox: box})
	parked, call := named("POST /payments", "ann", "parked"), named("charge", hostile, "call")
	long := strings.Repeat("ä", 401)
	for _, c := range []struct {
		path, field string
		form        url.Values
	}{
		{parked.path, "reason", s.formOf(parked, "failed", "reason", " ")},
		{parked.path, "reason", s.formOf(parked, "failed", "reason", long)},
		{parked.path, "status", s.formOf(parked, "happened", "status", "2o1")},
		{parked.path, "header", s.formOf(parked, "happened", "status", "201", "header", "no colon")},
		{call.path, "body", s.formOf(call, "happened", "body", "no JSON")},
		{stuck().path, "step", s.formOf(stuck(), "skip")},
		{stuck().path, "result", s.formOf(stuck(), "skip", "step", "charge", "result", "tx-1")},
		{"message?position=" + position, "reason", url.Values{"position": {position}, "act": {"retry"}}},
		{"message?position=" + position, "reason", url.Values{"position": {position}, "act": {"retry"}, "reason": {long}}},
	} {
		page := s.post(c.path, c.form)
		s.want(page, http.StatusBadRequest, "<title>Error: ", `<p id="problem">`)
		marked := regexp.MustCompile(`name="(\w+)"[^>]* aria-invalid="true" aria-describedby="problem"`).FindAllStringSubmatch(page.body, -1)
		if len(marked) != 1 || marked[0][1] != c.field {
			t.Errorf("%s: marked are %q, want %s in\n%s", c.path, marked, c.field, page.body)
		}
	}
	if page := s.get(parked.path); strings.Contains(page.body, "aria-invalid") || strings.Contains(page.body, "<title>Error") {
		t.Errorf("the page without a mistake is\n%s", page.body)
	}
}

// On a phone the style sheet shows the rows as blocks, and then some browsers forget that they
// are rows.
func TestPages_Tables_NameTheirRoles(t *testing.T) {
	box, _ := oneMessage(t)
	s := newSite(t, console.Options{Outbox: box, Sagas: []string{"order"}})
	g, err := semel.New(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := named("charge", "ann", "again")
	for range 2 { // so that it has a former owner
		_ = semel.Once(t.Context(), g, semel.Call{Operation: "charge", Tenant: "ann", Key: "again", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) error { return errors.New("lost") })
	}
	roles := map[string]string{"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "th": "columnheader", "td": "cell"}
	for _, path := range []string{"", "records", "sagas", "outbox?state=waiting", again.path} {
		parts := regexp.MustCompile(`<(table|thead|tbody|tr|th|td)\b[^>]*>`).FindAllStringSubmatch(s.get(path).body, -1)
		if len(parts) == 0 {
			t.Errorf("%s: has no table", path)
		}
		for _, m := range parts {
			if !strings.Contains(m[0], ` role="`+roles[m[1]]+`"`) {
				t.Errorf("%s: %s has no role %s", path, m[0], roles[m[1]])
			}
		}
	}
}
