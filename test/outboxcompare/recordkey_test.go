package outboxcompare

import (
	"os"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelwatermill"
	"github.com/semel-go/semel/store/memstore"
)

// unmarshaler is the one of the package documentation of semelwatermill.
type unmarshaler struct{ kafka.DefaultMarshaler }

func (u unmarshaler) Unmarshal(record *sarama.ConsumerMessage) (*message.Message, error) {
	msg, err := u.DefaultMarshaler.Unmarshal(record)
	if err == nil && len(record.Key) > 0 {
		msg.Metadata.Set(semelwatermill.RecordKeyMetadata, string(record.Key))
	}
	return msg, err
}

// A poison queue publishes the metadata of a message, without the key of its record. Two
// messages that differ in these keys only are two also after that.
func TestUnmarshaler_PoisonQueueWithoutRecordKeys_EachMessageRuns(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	once, err := semelwatermill.NoPublishHandler(g, consume.Keyed("billing", consume.Hash()),
		func(*message.Message) error { runs++; return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, recordKey := range []string{"order-7", "order-8"} {
		first, err := unmarshaler{}.Unmarshal(&sarama.ConsumerMessage{Key: []byte(recordKey), Value: []byte(`{"status":"paid"}`)})
		if err != nil {
			t.Fatal(err)
		}
		second, err := unmarshaler{}.Unmarshal(published(t, first))
		if err != nil {
			t.Fatal(err)
		}
		if got := second.Metadata.Get(semelwatermill.RecordKeyMetadata); got != recordKey {
			t.Errorf("after the poison queue the record key is %q, want %q", got, recordKey)
		}
		for range 2 {
			second.SetContext(t.Context())
			if err := once(second); err != nil || runs != i+1 {
				t.Errorf("%s: %d runs, %v; want %d", recordKey, runs, err, i+1)
			}
		}
	}
}

// published is the record that Watermill's default marshaler makes of a message.
func published(t *testing.T, msg *message.Message) *sarama.ConsumerMessage {
	t.Helper()
	p, err := kafka.DefaultMarshaler{}.Marshal("poison", msg)
	if err != nil {
		t.Fatal(err)
	}
	record := &sarama.ConsumerMessage{Topic: p.Topic}
	if record.Value, err = p.Value.Encode(); err != nil {
		t.Fatal(err)
	}
	for _, h := range p.Headers {
		record.Headers = append(record.Headers, &h)
	}
	return record
}

// The function that users copy is the one that is tested here.
func TestUnmarshaler_Documentation_HasTheTestedFunction(t *testing.T) {
	doc, err := os.ReadFile("../../consume/semelwatermill/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("recordkey_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, function, ok := strings.Cut(strings.ReplaceAll(string(doc), "\n//\t", "\n"), "\nfunc (u unmarshaler) Unmarshal(")
	function, _, found := strings.Cut(function, "\n}\n")
	if !ok || !found || !strings.Contains(string(own), "\nfunc (u unmarshaler) Unmarshal("+function+"\n}\n") {
		t.Errorf("the documentation has another Unmarshal:\n%s", function)
	}
}
