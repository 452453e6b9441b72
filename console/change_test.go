package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
)

func eve(*http.Request) string { return "eve" }

func TestResolve_EachVerdict(t *testing.T) {
	parked := named("POST /payments", "ann", "parked")
	for verb, c := range map[string]struct {
		more  []string
		state store.State
	}{
		"happened":       {[]string{"status", "201", "header", "location: /p/9\r\n", "body", "made by hand"}, store.Completed},
		"did-not-happen": {nil, store.Released},
		"failed":         {nil, store.Failed},
	} {
		s := newSite(t, console.Options{Operator: eve})
		s.want(s.post(parked.path, s.formOf(parked, verb, c.more...)), http.StatusOK, "Resolved.")
		r := s.state(parked.key)
		if r.State != c.state || !strings.Contains(r.Holder, "eve: ledger 4711") {
			t.Errorf("%s: the record is %v, held by %q", verb, r.State, r.Holder)
		}
		if want := (store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: "/p/9"}}, Body: []byte("made by hand")}); verb == "happened" && !r.Outcome.Equal(want) {
			t.Errorf("the answer is %+v", r.Outcome)
		}
		if log := s.log.String(); !strings.Contains(log, `"operator":"eve"`) || !strings.Contains(log, `"result":"done"`) || !strings.Contains(log, `"msg":"resolve","via":"console"`) || !strings.Contains(log, `"verdict":"`+verb+`"`) || strings.Contains(log, `"key":"parked"`) {
			t.Errorf("%s: the log is %s", verb, log)
		}
	}
}

// With a secret the hash has another name, and the request is still one over HTTP.
func TestResolve_RequestHashedWithSecret_TakesStatus(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park, Secrets: []semel.Secret{{ID: "one", Key: make([]byte, 16)}}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = g.Run(t.Context(), semel.Call{Operation: "POST /payments", Tenant: "ann", Key: "keyed", Payload: semel.Digest("semelhttp/2", make([]byte, 32))},
		func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("lost")
		})
	keyed := named("POST /payments", "ann", "keyed")
	s.want(s.get(keyed.path), http.StatusOK, `name="status"`)
	s.want(s.post(keyed.path, s.formOf(keyed, "happened", "status", "201", "body", "made by hand")), http.StatusOK)
	if o := s.state(keyed.key).Outcome; o.Code != 201 || o.Codec != "" {
		t.Errorf("the answer is %+v", o)
	}
}

func TestResolve_CallOfDo_NeedsJSON(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	call := named("charge", hostile, "call")
	s.want(s.post(call.path, s.formOf(call, "happened", "body", "no JSON")), http.StatusBadRequest, "is not JSON")
	s.want(s.post(call.path, s.formOf(call, "happened", "body", "17")), http.StatusOK)
	if o := s.state(call.key).Outcome; string(o.Body) != "17" || o.Codec != "json" {
		t.Errorf("the answer is %+v", o)
	}
}

func TestSaga_Decisions(t *testing.T) {
	o1 := stuck()
	for verb, more := range map[string][]string{
		"retry": {"not-happened", "charge"},
		"back":  {"not-happened", "charge"},
		"skip":  {"step", "charge", "result", `"payment 4711"`},
	} {
		s := newSite(t, console.Options{Operator: eve})
		s.want(s.post(o1.path, s.formOf(o1, verb, more...)), http.StatusOK, "Decided", "An operator decided", "eve: ledger 4711")
		if r := s.state(o1.key); r.State != store.Released {
			t.Errorf("%s: the saga is %v", verb, r.State)
		}
		if page := s.get(o1.path); strings.Contains(page.body, "in attempt 0") {
			t.Errorf("%s: the page names attempt 0", verb)
		}
	}
	s := newSite(t, console.Options{Operator: eve})
	s.want(s.post(o1.path, s.formOf(o1, "retry", "not-happened", "reserve")), http.StatusBadRequest, "Nothing was decided")
	s.want(s.post(o1.path, s.formOf(o1, "skip")), http.StatusBadRequest, "name it")
	s.want(s.get(o1.path), http.StatusOK, "spellcheck=\"false\">\n</textarea>")
	for _, verb := range []string{"retry", "back"} {
		s.want(s.post(o1.path, s.formOf(o1, verb)), http.StatusBadRequest, "Nothing was decided: step &#34;charge&#34; is in doubt")
	}
	for step, says := range map[string]string{
		"charge": "Nothing was decided: step &#34;charge&#34; needs its result: the JSON that the step would have returned, or null",
		"ship":   "Nothing was decided: the saga is stuck at &#34;charge&#34;, not at &#34;ship&#34;",
	} {
		s.want(s.post(o1.path, s.formOf(o1, "skip", "step", step, "result", " ")), http.StatusBadRequest, says)
	}
	if r := s.state(o1.key); r.State != store.Unknown {
		t.Errorf("the saga is %v", r.State)
	}
}

// A verdict would end a saga without undoing its steps, so it is refused: by a POST, because
// the page has no such button.
func TestChange_VerdictAboutSaga_IsRefused(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	for _, verb := range []string{"failed", "did-not-happen", "happened", "reopen"} {
		s.want(s.post(stuck().path, s.formOf(stuck(), verb, "body", "null")), http.StatusBadRequest, "This is a saga", "retry, back or skip")
	}
	if r := s.state(stuck().key); r.State != store.Unknown {
		t.Errorf("the saga is %v", r.State)
	}
	if log := s.log.String(); strings.Count(log, `"result":"not done"`) != 4 {
		t.Errorf("the log is\n%s", log)
	}
}

func TestChange_OldFence_ChangesNothing(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	for _, r := range []record{named("POST /payments", "ann", "parked"), named("POST /payments", "ann", "failed"), stuck()} {
		before := s.state(r.key)
		for _, verb := range []string{"did-not-happen", "failed", "happened", "reopen", "retry", "back"} {
			form := s.formOf(r, verb, "fence", strconv.FormatUint(before.Fence-1, 10))
			s.want(s.post(r.path, form), http.StatusConflict, "Nothing was changed")
			if line := `"key":"` + r.key.Short() + `"`; !strings.Contains(s.log.String(), line) || !strings.Contains(s.log.String(), `"result":"not done"`) {
				t.Errorf("the log has no line with %s:\n%s", line, s.log.String())
			}
		}
		if after := s.state(r.key); after.State != before.State || after.Fence != before.Fence {
			t.Errorf("%s is %v now", r.key.Value, after.State)
		}
	}
}

func TestChange_RecordResolvedMeanwhile_NamesItsState(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	parked := named("POST /payments", "ann", "parked")
	form := s.formOf(parked, "happened", "status", "201")
	s.want(s.post(parked.path, form), http.StatusOK, "Resolved.")
	s.want(s.post(parked.path, form), http.StatusConflict, "Nothing was changed: the record has changed since you opened this page; it is completed now.")
}

// The page shows a form with a mistake again, and its fields keep their text.
func TestChange_Mistake_FormKeepsWhatWasTyped(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	for _, c := range []struct {
		record
		more  []string
		wants []string
	}{
		{named("POST /payments", "ann", "parked"), []string{"status", "2o1", "header", "X-A: <b>", "body", "</textarea>typed"}, []string{
			"The status is", `value="2o1"`, ">\nX-A: &lt;b&gt;</textarea>", ">\n&lt;/textarea&gt;typed</textarea>",
		}},
		{named("charge", hostile, "call"), []string{"body", "no JSON"}, []string{"is not JSON", ">\nno JSON</textarea>"}},
	} {
		form := s.formOf(c.record, "happened", append([]string{"reason", `as "they" said`}, c.more...)...)
		wants := append([]string{"The form below has what you typed", `name="reason" value="as &#34;they&#34; said"`, "<details open>"}, c.wants...)
		s.want(s.post(c.path, form), http.StatusBadRequest, wants...)
	}
	if page := s.get(named("POST /payments", "ann", "parked").path); strings.Contains(page.body, "<details open>") || !strings.Contains(page.body, "Content-Type: application/json\n</textarea>") {
		t.Errorf("the page without a mistake is\n%s", page.body)
	}
}

// So do the forms of a saga: the step, its result, the boxes, and the part that is open.
func TestChange_MistakeAboutSaga_FormKeepsWhatWasTyped(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	const box = `id="doubt-0" name="not-happened" value="charge"`
	skip := s.formOf(stuck(), "skip", "step", `ch"rge`, "result", "</textarea>tx-1", "not-happened", "charge")
	s.want(s.post(stuck().path, skip), http.StatusBadRequest, "The form below has what you typed", "<details open>", `value="ch&#34;rge"`, ">\n&lt;/textarea&gt;tx-1</textarea>", box+" checked>",
		`the result has to be JSON: a text has quotes, such as &#34;tx-1&#34;`)
	retry := s.formOf(stuck(), "retry", "step", "charge", "result", "", "reason", " ")
	page := s.post(stuck().path, retry)
	s.want(page, http.StatusBadRequest, box+">", `name="step" autocomplete="off" spellcheck="false" value="charge"`)
	if strings.Contains(page.body, "<details open>") {
		t.Errorf("the part about skipping is open although nothing was typed there:\n%s", page.body)
	}
	s.want(s.get(stuck().path), http.StatusOK, box+">", `value="charge"`, "<details>")
}

func TestChangeMessage_Mistake_FormKeepsReason(t *testing.T) {
	box, position := oneMessage(t)
	s := newSite(t, console.Options{Operator: eve, Outbox: box})
	s.want(s.post("message?position="+position, url.Values{"position": {position}, "act": {"explode"}, "reason": {"ticket 12"}}), http.StatusBadRequest,
		"There is no action &#34;explode&#34;; choose retry or drop.", `name="reason" value="ticket 12"`)
	s.want(s.get("outbox?state=lost"), http.StatusBadRequest, "There is no state &#34;lost&#34;; choose waiting, held, quarantined, sent.")
}

// A record that is in another state than the act needs has not changed: the page says which
// state it is.
func TestChange_WrongState_NamesState(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	failed, parked := named("POST /payments", "ann", "failed"), named("POST /payments", "ann", "parked")
	s.want(s.post(failed.path, s.formOf(failed, "did-not-happen")), http.StatusConflict, "the record is failed; only a parked (unknown) one can be resolved")
	s.want(s.post(parked.path, s.formOf(parked, "reopen")), http.StatusConflict, "the record is unknown; only a failed one can be reopened")
	if log := s.log.String(); strings.Count(log, `"result":"not done"`) != 2 {
		t.Errorf("the log is\n%s", log)
	}
}

func TestChange_Refused(t *testing.T) {
	parked := named("POST /payments", "ann", "parked")
	s := newSite(t, console.Options{Operator: eve})
	s.want(s.post(parked.path, s.formOf(parked, "failed", "fence", "")), http.StatusBadRequest, "The field fence")
	s.want(s.post(parked.path, s.formOf(parked, "failed", "reason", " ")), http.StatusBadRequest, "Say why")
	s.want(s.post(parked.path, s.formOf(parked, "explode")), http.StatusBadRequest, "There is no action &#34;explode&#34;; choose happened, did-not-happen, failed or reopen, and for a saga retry, back or skip.")
	s.want(s.post(parked.path, s.formOf(parked, "happened", "status", "99")), http.StatusBadRequest, "from 200 to 599")
	s.want(s.post(parked.path, s.formOf(parked, "happened", "status", "200", "header", "Set-Cookie: a=b")), http.StatusBadRequest, "cookies are not kept")
	for name, o := range map[string]console.Options{"nobody logged in": {Operator: func(*http.Request) string { return "" }}, "read-only": {}} {
		s := newSite(t, o)
		s.want(s.get(parked.path), http.StatusOK, "read-only", "semel inspect resolve")
		s.want(s.post(parked.path, s.formOf(parked, "failed")), http.StatusForbidden, "read-only")
		if r := s.state(parked.key); r.State != store.Unknown {
			t.Errorf("%s: the record is %v", name, r.State)
		}
	}
}

func TestChange_FromAnotherSite_Refused(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	parked := named("POST /payments", "ann", "parked")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := s.form(parked.path, s.formOf(parked, "failed"))
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set(name, value)
		s.want(s.do(r), http.StatusForbidden)
	}
	if r := s.state(parked.key); r.State != store.Unknown {
		t.Errorf("the record is %v", r.State)
	}
}

// The form of a stuck saga names a step that could be skipped. An operator who lets the saga
// go on does not skip it.
func TestAudit_SagaRetry_NamesWhatDidNotHappen(t *testing.T) {
	var acts []console.Act
	s := newSite(t, console.Options{Operator: eve, Audit: func(_ context.Context, a console.Act) (func(error) error, error) {
		acts = append(acts, a)
		return func(error) error { return nil }, nil
	}})
	s.want(s.post(stuck().path, s.formOf(stuck(), "retry", "step", "charge", "not-happened", "charge")), http.StatusOK, "Decided")
	if len(acts) != 1 || acts[0].Verb != "saga retry" || acts[0].Step != "" || !slices.Equal(acts[0].NotHappened, []string{"charge"}) {
		t.Errorf("the acts are %+v", acts)
	}
}

// Options.Audit hears of each change before it and after it, and can prevent it.
func TestAudit_BeforeAndAfterEachChange(t *testing.T) {
	parked := named("POST /payments", "ann", "parked")
	var acts []console.Act
	var results []error
	var refuse error
	o := console.Options{Operator: eve, Audit: func(_ context.Context, a console.Act) (func(error) error, error) {
		acts = append(acts, a)
		return func(err error) error { results = append(results, err); return nil }, refuse
	}}
	s := newSite(t, o)
	fence := s.state(parked.key).Fence
	s.want(s.post(parked.path, s.formOf(parked, "happened", "status", "none")), http.StatusBadRequest)
	refuse = errors.New("the disk is full")
	s.want(s.post(parked.path, s.formOf(parked, "failed")), http.StatusServiceUnavailable, "Nothing was changed: the disk is full")
	if r := s.state(parked.key); r.State != store.Unknown {
		t.Errorf("the record is %v although the act was refused", r.State)
	}
	refuse = nil
	s.want(s.post(parked.path, s.formOf(parked, "failed")), http.StatusOK, "Resolved.")
	want := console.Act{Verb: "resolve", Verdict: "failed", Operator: "eve", Reason: "ledger 4711", Key: parked.key, Fence: fence}
	if len(acts) != 3 || !reflect.DeepEqual(acts[2], want) || len(results) != 2 || !errors.Is(results[0], semel.ErrInvalid) || results[1] != nil {
		t.Errorf("the acts are %+v with the results %v; want the last to be %+v", acts, results, want)
	}
}
