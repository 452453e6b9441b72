package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// oneMessage is an outbox with one message, and the message's position.
func oneMessage(t *testing.T) (box *outboxtest.Memory, position string) {
	t.Helper()
	box = outboxtest.NewMemory()
	if err := box.Put(t.Context(), outbox.Message{Topic: "orders", ID: "a1"}); err != nil {
		t.Fatal(err)
	}
	waiting, err := box.List(t.Context(), outbox.Waiting, 0, 1)
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	return box, strconv.FormatInt(waiting[0].Position, 10)
}

// A message that was dropped has no page any more.
func TestChangeMessage_Drop_PageSaysThatItIsDone(t *testing.T) {
	box, position := oneMessage(t)
	s := newSite(t, console.Options{Operator: eve, Outbox: box})
	page := s.post("message?position="+position, url.Values{"position": {position}, "state": {"waiting"}, "act": {"drop"}, "reason": {"ticket 12"}})
	s.want(page, http.StatusOK, "Dropped", "<h1>Outbox</h1>")
	if strings.Contains(page.body, "That did not work") {
		t.Errorf("the page is\n%s", page.body)
	}
	if left, err := box.List(t.Context(), outbox.Waiting, 0, 1); err != nil || len(left) != 0 {
		t.Errorf("the outbox has %v, %v", left, err)
	}
}

// The act is done, although its entry in the audit trail is missing.
func TestChange_AuditFailsAfterwards_PageSaysDone(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve, Audit: func(context.Context, console.Act) (func(error) error, error) {
		return func(error) error { return errors.New("the disk is full") }, nil
	}})
	parked := named("POST /payments", "ann", "parked")
	page := s.post(parked.path, s.formOf(parked, "failed"))
	s.want(page, http.StatusInternalServerError, "Done, with an error", "It is done, but: the disk is full")
	if strings.Contains(page.body, "That did not work") {
		t.Errorf("the page is\n%s", page.body)
	}
}

// Eve has opened the page of a quarantined message. Somebody else has it sent again before she
// decides to drop it.
func TestChangeMessage_StateHasChanged_MessageStays(t *testing.T) {
	box, position := oneMessage(t)
	s := newSite(t, console.Options{Operator: eve, Outbox: box})
	if page := s.get("message?position=" + position); !strings.Contains(page.body, `name="state" value="waiting"`) {
		t.Errorf("the form does not name the state of the message:\n%s", page.body)
	}
	for _, state := range []url.Values{{}, {"state": {"quarantined"}}} {
		state["position"], state["act"], state["reason"] = []string{position}, []string{"drop"}, []string{"ticket 12"}
		s.want(s.post("message?position="+position, state), http.StatusConflict, "Nothing was changed", "another state than the page has shown")
	}
	if left, err := box.List(t.Context(), outbox.Waiting, 0, 1); err != nil || len(left) != 1 {
		t.Errorf("the outbox has %v, %v; want the message", left, err)
	}
}
