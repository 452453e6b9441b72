package deliver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The alert for dead letters leads to the log, so a line names the record: the hash is what
// semel inspect get takes. The key itself is not shown.
func TestServe_DeadLetter_LogNamesItsRecord(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(404))
	b.publish("order-1", "", "x", "tenant", "ann")
	var out bytes.Buffer // read after the end
	s := serve(t, memstore.New(nil), b, e.URL, func(o *Options) {
		o.Log, o.Calls.TenantHeader = slog.New(slog.NewTextHandler(&out, nil)), "tenant"
	})
	b.settled(t)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	want := "operation=billing tenant=ann key=" + store.Key{Operation: "billing", Tenant: "ann", Value: "order-1"}.Short() + " action=dead-letter"
	if log := out.String(); !strings.Contains(log, want) || strings.Contains(log, "order-1") {
		t.Errorf("the log is %q, want %s", log, want)
	}
}

// A broker without partitions, offsets or IDs has none in the log.
func TestNameOf_BrokerHasNoPlace_LogHasNone(t *testing.T) {
	if got := nameOf(&consume.Message{Origin: consume.Origin{Topic: "orders"}}); len(got) != 2 {
		t.Errorf("got %v, want the topic alone", got)
	}
	if got := nameOf(&consume.Message{Origin: consume.Origin{Topic: "orders", Offset: 7, ID: "a/0/7"}}); len(got) != 8 {
		t.Errorf("got %v, want topic, partition, offset and ID", got)
	}
}
