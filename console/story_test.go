package console_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var (
	events = regexp.MustCompile(`(?s)<ol class="story">(.*?)</ol>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
)

// story is the text of "What happened", a line for each line of the page.
func (s *site) story(r record) string {
	s.Helper()
	page := s.get(r.path)
	s.want(page, http.StatusOK)
	found := events.FindStringSubmatch(page.body)
	if found == nil {
		s.Fatalf("no story in\n%s", page.body)
	}
	return strings.TrimSpace(tags.ReplaceAllString(found[1], ""))
}

func (s *site) wantStory(r record, want ...string) {
	s.Helper()
	if got := s.story(r); got != strings.Join(want, "\n") {
		s.Errorf("the story is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// clock is a store's clock that a test moves.
type clock struct{ now time.Time }

func (c *clock) site(t *testing.T) *site {
	c.now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	return siteOver(t, memstore.New(&memstore.Options{Now: func() time.Time { return c.now }}), console.Options{Operator: eve})
}

// A verdict has a line of its own, and does not date the end of the attempt.
func TestRecord_Resolved_TellsDoubtAndVerdictApart(t *testing.T) {
	for verb, verdict := range map[string]string{"happened": "it happened", "did-not-happen": "it did not happen", "failed": "it failed"} {
		var c clock
		s, r := c.site(t), named("charge", "ann", "k")
		g, err := semel.New(s.store, &semel.Options{OnDoubt: semel.Park, Holder: "host/7"})
		if err != nil {
			t.Fatal(err)
		}
		run := func() {
			_, _ = g.Run(t.Context(), semel.Call{Operation: "charge", Tenant: "ann", Key: "k", Payload: semel.NoPayload()},
				func(context.Context, *semel.Execution) (store.Outcome, error) {
					c.now = c.now.Add(2 * time.Second)
					return store.Outcome{}, errors.New("the answer was lost")
				})
		}
		run()
		c.now = c.now.Add(3 * time.Hour)
		s.want(s.post(r.path, s.formOf(r, verb, "body", "17")), http.StatusOK, "Resolved.")
		want := []string{
			"First call with this key 2026-11-29 12:00:00 UTC", "", "Attempt 1: in doubt 2026-11-29 12:00:02 UTC", "",
			"An operator decided: " + verdict + " 2026-11-29 15:00:02 UTC", "eve: ledger 4711",
		}
		if verb == "failed" {
			want[5] += "What to do: nothing: it is the answer. Against a wrong verdict: semel inspect reopen, if the call has no steps"
		}
		s.wantStory(r, want...)
		if verb == "happened" {
			continue
		}
		if verb == "failed" {
			c.now = c.now.Add(time.Hour)
			s.want(s.post(r.path, s.formOf(r, "reopen", "reason", "ledger 4712")), http.StatusOK, "Reopened")
			want = append(want[:5], "eve: ledger 4711", "An operator reopened it 2026-11-29 16:00:02 UTC", "eve: ledger 4712")
			s.wantStory(r, want...)
		}
		c.now = c.now.Add(time.Hour)
		run() // the decision stays in the story of the next attempt
		next := map[string]string{"did-not-happen": "\nAttempt 1 after the decision: in doubt ", "failed": "\nAttempt 1 after the reopening: in doubt "}[verb]
		if got := s.story(r); !strings.HasPrefix(got, strings.Join(want, "\n")+next+c.now.Format("2006-01-02 15:04:05 UTC")) {
			t.Errorf("%s, after the next attempt: the story is\n%s\nwant it to begin with\n%s", verb, got, strings.Join(want, "\n"))
		}
		if page := s.get(r.path); strings.Contains(page.body, `data-label="Holder">resolved by`) || strings.Contains(page.body, `data-label="Holder">reopened by`) {
			t.Errorf("%s: an operator is among the processes:\n%s", verb, page.body)
		}
	}
}

// If a process died, nobody knows when: the page has the end of the lease, and says so.
func TestRecord_LeaseExpired_SaysThatEndIsNotKnown(t *testing.T) {
	var c clock
	s, r := c.site(t), named("charge", "ann", "k")
	p := store.Proposal{Key: r.key, State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Holder: "host/7", Attempt: 1, Lease: 30 * time.Second, Fingerprint: store.Fingerprint{}}
	if _, err := s.store.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(time.Minute)
	s.wantStory(r, "First call with this key 2026-11-29 12:00:00 UTC", "",
		"Attempt 1: abandoned 2026-11-29 12:00:30 UTC", "Its process is gone: the lease has ended. The next call, or a sweep, acts on it.")
	f, err := s.store.Get(t.Context(), r.key)
	if err != nil {
		t.Fatal(err)
	}
	parked := store.Proposal{Key: r.key, State: store.Unknown, Policy: store.Park, Owner: store.Owner{2}, Holder: "host/8", Attempt: 1, Error: "gone", FormerOwners: f.Record.FormerOwnersAfter(store.Unknown)}
	if f, err := s.store.Swap(t.Context(), f.Record.Seen(), parked); err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	c.now = c.now.Add(time.Hour)
	s.want(s.post(r.path, s.formOf(r, "did-not-happen")), http.StatusOK, "Resolved.")
	s.wantStory(r, "First call with this key 2026-11-29 12:00:00 UTC", "",
		"Attempt 1: the lease expired. When the process stopped is not known 2026-11-29 12:00:30 UTC", "",
		"Parked, because nobody knows whether the effect happened 2026-11-29 12:01:00 UTC", "",
		"An operator decided: it did not happen 2026-11-29 13:01:00 UTC", "eve: ledger 4711")
}

// The story of a saga has each decision, and the attempt that it was about.
func TestRecord_SagaDecided_TellsAttemptAndDecision(t *testing.T) {
	var c clock
	s := c.site(t)
	s.stuckSaga()
	c.now = c.now.Add(time.Hour)
	s.want(s.post(stuck().path, s.formOf(stuck(), "retry", "not-happened", "charge")), http.StatusOK, "Decided")
	want := []string{
		"First call with this key 2026-11-29 12:00:00 UTC", "The saga was started 2026-11-29 12:00:00 UTC", "8 bytes",
		"Step reserve 2026-11-29 12:00:00 UTC", "done in attempt 1", "10 bytes",
		"Step charge began; it must not be repeated after doubt 2026-11-29 12:00:00 UTC",
		"Attempt 1: stuck 2026-11-29 12:00:00 UTC", "step &#34;charge&#34; may have happened: no answer",
		"An operator decided: retry; charge did not happen 2026-11-29 13:00:00 UTC", "eve: ledger 4711",
		"Step charge did not happen that time 2026-11-29 13:00:00 UTC",
		"Waiting 2026-11-29 13:00:00 UTC", "A worker goes on with the saga when it is due.",
	}
	lines := slices.DeleteFunc(strings.Split(s.story(stuck()), "\n"), func(line string) bool { return line == "" })
	if !slices.Equal(lines, want) {
		t.Errorf("the story is\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	c.now = c.now.Add(time.Hour)
	s.stuckSaga() // it goes on, and is stuck again
	if got, want := s.story(stuck()), "Attempt 1 after the decision: stuck 2026-11-29 14:00:00 UTC"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if page := s.get(stuck().path); strings.Contains(page.body, `data-label="Holder">operator: `) {
		t.Errorf("an operator is among the processes:\n%s", page.body)
	}
}

// A saga that has turned back offers no second turn, and names the compensation that is stuck.
func TestRecord_SagaTurnedBack_OffersRetryAndSkip(t *testing.T) {
	var c clock
	s := c.site(t)
	trip := s.stuckUndo()
	page := s.get(trip.path)
	s.want(page, http.StatusOK, "The compensation of charge is stuck", `value="charge:undo"`, `value="retry">Try again`)
	if strings.Contains(page.body, `value="back"`) {
		t.Errorf("it can turn back again:\n%s", page.body)
	}
	s.want(s.post(trip.path, s.formOf(trip, "back")), http.StatusBadRequest, "turned back already", "charge:undo")
	s.want(s.post(trip.path, s.formOf(trip, "skip", "step", "charge:undo")), http.StatusOK, "Decided", "An operator decided: skip charge:undo")
}

// The attempt before a decision of an earlier version is not kept, and the story says so.
func TestRecord_DecisionOfEarlierVersion_SaysThatAttemptIsNotKept(t *testing.T) {
	var c clock
	s, k := c.site(t), saga.Key("order", "ann", "old")
	f, err := s.store.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"saga:operator:1": `{"Why":"ann: again"}`, "saga:operator:2": "encrypted"} {
		if err := s.store.RecordStep(t.Context(), f.Record.Lease(), store.Step{Name: name, Outcome: store.Outcome{Body: []byte(body)}}); err != nil {
			t.Fatal(err)
		}
	}
	got := s.story(named(k.Operation, k.Tenant, k.Value))
	for _, want := range []string{"An attempt: stuck time not known\nThe record does not keep since when and why.\nAn operator decided: retry ", "The decision cannot be read: "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// The policy of a saga's record says nothing about its steps, which may be Parked.
func TestRecord_Saga_ShowsNoPolicy(t *testing.T) {
	s := newSite(t, console.Options{})
	s.want(s.get(named("POST /payments", "ann", "parked").path), http.StatusOK, "<dt>On doubt</dt><dd>park</dd>")
	if page := s.get(stuck().path); strings.Contains(page.body, "On doubt") || !strings.Contains(page.body, ">stuck</span>") {
		t.Errorf("the page of the saga is\n%s", page.body)
	}
}
