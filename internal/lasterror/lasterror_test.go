package lasterror_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// The page of errors has a row for each code, with the same words, and no further one.
func TestTable_PageOfErrors_HasSameRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)\n## Codes in records\n(.*?)\n## `).FindSubmatch(page)
	if section == nil {
		t.Fatal("the page has no section for codes in records")
	}
	rows := regexp.MustCompile("(?m)^\\| `.*$").FindAllString(string(section[1]), -1)
	for i, m := range lasterror.Table {
		want := fmt.Sprintf("| `%s` | %s | %s |", m.Code, m.Happened, m.Next)
		if i >= len(rows) || rows[i] != want {
			t.Errorf("row %d must be\n%s", i, want)
		}
	}
	if len(rows) != len(lasterror.Table) {
		t.Errorf("the page has %d rows, want %d", len(rows), len(lasterror.Table))
	}
}

func TestByCode_CodesOfTheLibrary_Known(t *testing.T) {
	for _, code := range []string{semel.CodeAttemptsExhausted, saga.CodeDeadline, saga.CodeNoEvent, saga.CodeOperator, "grpc.NotFound", "http_422"} {
		if m, ok := lasterror.ByCode(code); !ok || m.Code != code || m.Happened == "" || m.Next == "" {
			t.Errorf("%s: %+v, %v", code, m, ok)
		}
	}
}

func TestOf_CodeInTextOrFailure_Found(t *testing.T) {
	failure, err := protocol.FailureOutcome(protocol.Failure{Code: "resolved_failed", Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]*store.Record{
		"upstream_lost":        {State: store.Unknown, LastError: lasterror.Text("upstream_lost", errors.New("EOF"))},
		"upstream_timeout":     {State: store.Released, LastError: lasterror.Text("upstream_timeout", nil)},
		"attempts_exhausted":   {State: store.Unknown, LastError: "all 3 attempts failed; the last: " + lasterror.Text("attempts_exhausted", nil) + "; the reconciler: no"},
		"upstream_unreachable": {State: store.Released, LastError: "upstream_unreachable"},
		"status_502":           {State: store.Unknown, LastError: "the handler answered 502: it may have been done"},
		"status_500":           {State: store.Unknown, LastError: "the service answered 500 Internal Server Error: it may have been done"},
		"resolved_failed":      {State: store.Failed, LastError: "an operator says so (upstream_lost)", Outcome: failure},
		"failure_not_kept":     {State: store.Failed, Outcome: store.Outcome{Gone: true}},
	} {
		if m, ok := lasterror.Explain(r); !ok || m.Code != want {
			t.Errorf("%+v: %+v, %v, want %s", r, m, ok, want)
		}
	}
	for _, text := range []string{"", "declined", "the bank said: no (upstream_lost)", "the lease of attempt 1 expired: host/1 died", "the handler answered 5020", "it says: the handler answered 502"} {
		if m, ok := lasterror.Explain(&store.Record{State: store.Released, LastError: text}); ok {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

// An operator reads only what the record's policy allows.
func TestOf_NextStep_IsForThePolicyOfTheRecord(t *testing.T) {
	for policy, want := range map[store.Policy][2]string{
		store.Park:  {"took effect, and decide by semel inspect resolve", "retry"},
		store.Retry: {"took effect; the next repeat is sent again", "resolve"},
	} {
		for _, text := range []string{"upstream_lost", "the service answered 502: x"} {
			m, ok := lasterror.Explain(&store.Record{Policy: policy, State: store.Unknown, LastError: text})
			if !ok || !strings.Contains(m.Next, want[0]) || strings.Contains(m.Next, want[1]) || strings.Contains(m.Next, "Under ") {
				t.Errorf("%v, %s: %s", policy, text, m.Next)
			}
		}
	}
}

// The middleware has no option of semel proxy, so its records must not advise one.
func TestOf_HandlerAnswered_AdviceIsForItsDoor(t *testing.T) {
	for operation, want := range map[string][2]string{
		"http":           {"the service answered", "--no-effect-statuses"},
		"POST /payments": {"the handler answered", "semelhttp.NoEffect"},
	} {
		m, ok := lasterror.Explain(&store.Record{Key: store.Key{Operation: operation}, Policy: store.Park, State: store.Unknown, LastError: "the handler answered 500: it may have been done"})
		if !ok || m.Code != "status_500" || !strings.HasPrefix(m.Happened, want[0]) || !strings.Contains(m.Next, want[1]) ||
			operation != "http" && strings.Contains(m.Next, "--") || strings.Contains(m.Next, "Under ") {
			t.Errorf("%s: %+v, %v", operation, m, ok)
		}
	}
}

func TestShown_BareCode_BecomesSentence(t *testing.T) {
	for text, want := range map[string]string{
		"upstream_lost": "the request was sent to the service, and no whole answer came (upstream_lost)",
		"declined":      "declined", "": "",
	} {
		if got := lasterror.Display(&store.Record{LastError: text}); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestShown_Decision_IsNoError(t *testing.T) {
	failed, stuck := store.FormerOwner{Holder: "host/1", State: store.Failed, Next: store.Released}, store.FormerOwner{Holder: "host/1", State: store.Unknown, Next: store.Processing}
	ran := store.FormerOwner{Holder: "host/1", State: store.Released, Next: store.Processing}
	for text, c := range map[string]struct {
		operation, by string
		before        store.FormerOwner // the decision
	}{
		"reopened: eve: again":                   {"pay", "host/2", failed},
		"reconciled: it did not happen":          {"pay", "host/2 reconciling", stuck},
		"an operator decided: it did not happen": {"pay", "host/2", stuck},
		"operator: eve: again":                   {"order##saga", "operator: eve: again", stuck},
	} {
		key := store.Key{Operation: c.operation}
		decided := store.Record{Key: key, State: store.Released, Holder: c.by, LastError: text, FormerOwners: []store.FormerOwner{c.before}}
		again := store.Record{Key: key, State: store.Processing, Holder: "host/3", LastError: text, FormerOwners: decided.FormerOwnersAfter(store.Processing)}
		for _, r := range []*store.Record{&decided, &again} {
			if got := lasterror.Display(r); got != "" {
				t.Errorf("%v, %q is shown as the error %q", r.State, text, got)
			}
		}
	}
	// Errors of handlers begin with the same words.
	for text, operation := range map[string]string{"operator: no route": "order##saga", "operator: busy": "pay", "reopened: the line is dead": "pay"} {
		for _, state := range []store.State{store.Released, store.Unknown, store.Failed, store.Processing} {
			for _, before := range [][]store.FormerOwner{nil, {ran}, {failed, {Holder: "eve", State: store.Released, Next: store.Processing}, ran}, {stuck, {Holder: "operator: eve: again", State: store.Released, Next: store.Processing}, ran}} {
				if got := lasterror.Display(&store.Record{Key: store.Key{Operation: operation}, State: state, Holder: "host/1", LastError: text, FormerOwners: before}); got != text {
					t.Errorf("%v: the error %q is shown as %q", state, text, got)
				}
			}
		}
	}
}
