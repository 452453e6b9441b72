package semelwatermill

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel/consume"
)

// A producer that does not use Watermill sends no UUID. Its records may differ in their keys only.
func TestHandler_RecordKeysDiffer_EachRuns(t *testing.T) {
	runs := 0
	once, err := NoPublishHandler(guardOf(t, nil), consume.Keyed("billing", consume.Hash()),
		func(*message.Message) error { runs++; return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		recordKey string
		want      int
	}{{"order-7", 1}, {"order-8", 2}, {"order-7", 2}, {"", 3}} {
		msg := message.NewMessageWithContext(t.Context(), "", []byte(`{"status":"paid"}`))
		if c.recordKey != "" {
			msg.Metadata.Set(RecordKeyMetadata, c.recordKey)
		}
		if err := once(msg); err != nil || runs != c.want {
			t.Errorf("record key %q: %d runs, %v; want %d", c.recordKey, runs, err, c.want)
		}
	}
}
