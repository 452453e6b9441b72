package semelnats

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// The copy has a Nats-Msg-Id of its own, by which the server drops repeats of it. The key
// source still finds the message's, also in the copy of a copy.
func TestLetter_KeyIsNatsMsgID_CopyHasTheSameKey(t *testing.T) {
	m := &consume.Message{Headers: []store.Header{{Name: "Nats-Msg-Id", Value: "order-17"}}, Body: []byte("b")}
	for i := range 2 {
		m.Origin.ID = fmt.Sprintf("ORDERS/%d@1", i)
		d := driver.Disposition{Action: driver.Quarantine, Reason: driver.ReasonUnknown}
		copied := letter("quarantine.billing", "billing", driver.Letter(m, d, "billing"), m.Body)
		if id, _ := m.Header(driver.LetterID); copied.Header.Get("Nats-Msg-Id") == "billing/"+id || copied.Header.Get("Nats-Msg-Id") == "order-17" {
			t.Errorf("copy %d has the Nats-Msg-Id of its message", i+1)
		}
		m = &consume.Message{Headers: headers(copied.Header), Body: copied.Data}
		if key, err := consume.FromHeader("Nats-Msg-Id")(m); key != "order-17" || err != nil {
			t.Errorf("copy %d has the key %q, %v", i+1, key, err)
		}
	}
}

// A message without a Nats-Msg-Id has no key of this kind, and neither has its copy.
func TestLetter_NoNatsMsgID_CopyHasNone(t *testing.T) {
	copied := letter("dead", "billing", driver.Letter(&consume.Message{}, driver.Disposition{Action: driver.DeadLetter}, "billing"), nil)
	m := &consume.Message{Headers: headers(copied.Header)}
	if id, ok := m.Header("Nats-Msg-Id"); ok {
		t.Errorf("the copy has the Nats-Msg-Id %q", id)
	}
}
