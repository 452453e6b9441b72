package consume_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

type payment struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// A consumer that charges each payment once, however often its message comes.
func Example() {
	guard, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		log.Fatal(err)
	}
	keys := consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.CloudEvent(), consume.JSONField("id"))
	billing, err := consume.New(guard, keys, func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		var p payment
		if err := json.Unmarshal(m.Body, &p); err != nil {
			return semel.Final(err) // to the dead letters; any other error: again later
		}
		fmt.Println("charging", p.Amount, "for", x.Key())
		return nil
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 { // in a service: billing.Serve(ctx, source)
		d := billing.Handle(context.Background(), &consume.Message{Body: []byte(`{"id":"p1","amount":7}`)})
		fmt.Println(d.Action, d.Reason)
	}
	d := billing.Handle(context.Background(), &consume.Message{Body: []byte(`{"id":"p1","amount":8}`)})
	fmt.Println(d.Action, d.Reason)
	// Output:
	// charging 7 for semel-field:p1
	// ack done
	// ack duplicate
	// ack duplicate
	// dead-letter payload_mismatch
}

// Keys of several tenants, and a payload of which only two fields count: a
// producer that sends again may send another time stamp.
func ExampleFirst() {
	find := consume.First(consume.FromHeader(consume.KeyHeader), consume.JSONField("id"))
	call := func(m *consume.Message) (semel.Call, error) {
		key, err := find(m)
		if err != nil {
			return semel.Call{}, err
		}
		tenant, _ := m.Header("tenant")
		return semel.Call{Operation: "billing", Tenant: tenant, Key: key, Payload: semel.Fields(m.Body, "amount", "currency")}, nil
	}
	_, err := call(&consume.Message{Body: []byte(`{"amount":7}`)})
	fmt.Println(err)
	// Output: consume: the message has no idempotency key
}

// The events have their type in a header that no standard names.
func ExamplePayload() {
	call := func(m *consume.Message) (semel.Call, error) {
		key, err := consume.JSONField("id")(m)
		action, _ := m.Header("action")
		return semel.Call{Operation: "billing", Tenant: semel.Shared, Key: fmt.Sprintf("%q %s", action, key), Payload: consume.Payload(m)}, err
	}
	created, _ := call(&consume.Message{Headers: []store.Header{{Name: "action", Value: "created"}}, Body: []byte(`{"id":7}`)})
	fmt.Println(created.Key)
	// Output: "created" semel-field:7
}

// A message without a key runs unprotected, instead of being dead-lettered.
func ExampleUnprotected() {
	keys := consume.Keyed("metrics", consume.FromHeader(consume.KeyHeader), consume.Unprotected())
	_, err := keys(&consume.Message{Body: []byte("7")})
	fmt.Println(err)
	// Output: <nil>
}

// A message that a handler sends has a key of its own, the same for each
// attempt.
func ExampleStamp() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		log.Fatal(err)
	}
	c, err := consume.New(guard, consume.Keyed("orders", consume.BrokerID()), func(_ context.Context, x *semel.Execution, _ *consume.Message) error {
		for _, h := range consume.Stamp(x, "invoice") {
			fmt.Println(h.Name, len(h.Value))
		}
		return nil
	}, &consume.Options{Retention: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	c.Handle(context.Background(), &consume.Message{Origin: consume.Origin{ID: "orders/0/7"}})
	// Output:
	// idempotency-key 36
	// semel-caused-by 19
}
