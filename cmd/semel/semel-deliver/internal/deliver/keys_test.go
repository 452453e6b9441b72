package deliver

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// HTTP trims spaces and tabs of a header, so the service cannot tell such tenants apart.
func TestServe_ScopeHeaderHasSpace_IsTheTenantThatTheServiceGets(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	for _, account := range []string{"ann", "ann ", "\tann", "ann\u00a0", "a b", " ", "ann\r", "ann\x00"} {
		b.publish("k", "", "x", "x-account", account)
	}
	serve(t, nil, b, e.URL, func(o *Options) {
		o.Calls.TenantHeader = "X-Account"
		o.Sending.Forward = []string{"X-Account"}
	})
	b.settled(t)
	sent := map[string]int{}
	for _, r := range e.requests() {
		sent[r.header.Get("X-Account")]++
	}
	if len(sent) != 3 || sent["ann"] != 1 || sent["ann\u00a0"] != 1 || sent["a b"] != 1 {
		t.Errorf("the service got %v", sent)
	}
	letters := strings.Join(b.letters(driver.DeadLetter), "\n")
	if strings.Count(letters, "is missing or empty") != 1 || strings.Count(letters, "has a control character") != 2 {
		t.Errorf("dead letters:\n%s", letters)
	}
}

// The type of an event may be in a header only, and a record may differ in its key only.
func TestCall_TypeOrRecordKeyDiffers_IsMismatch(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	for _, kind := range []string{"created", "created", "cancelled"} {
		b.publish("k", "", "x", "event-type", kind)
	}
	serve(t, nil, b, e.URL, nil)
	b.settled(t)
	if letters := b.letters(driver.DeadLetter); len(letters) != 1 || !strings.HasPrefix(letters[0], "payload_mismatch") || len(e.requests()) != 1 {
		t.Errorf("%d requests, dead letters %q", len(e.requests()), letters)
	}
	source, err := ParseKey("hash")
	if err != nil {
		t.Fatal(err)
	}
	c := &Calls{Operation: "g", Sources: []consume.KeySource{source}}
	a, errA := c.Call(&consume.Message{RecordKey: []byte("order-7"), Body: []byte("paid")})
	other, errB := c.Call(&consume.Message{RecordKey: []byte("order-8"), Body: []byte("paid")})
	if errA != nil || errB != nil || a.Key == other.Key {
		t.Errorf("the keys are %q and %q, errors %v, %v", a.Key, other.Key, errA, errB)
	}
}
