package semelsqs_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// AWS advises a default wait of 20 s. The receives that look for the rest of a burst must
// not wait that long, because the messages of the others wait with them.
func TestNext_QueueWaits20Seconds_BurstIsNotDelayed(t *testing.T) {
	t.Parallel()
	b := open(t, false)
	if _, err := b.client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &b.queue, Attributes: map[string]string{"ReceiveMessageWaitTimeSeconds": "20"}}); err != nil {
		t.Fatal(err)
	}
	b.opt.Visibility = 5 * time.Minute
	const all = 12 // so that the first receive is full, and the next are several
	for range all {
		b.Publish(t, keyed("k"))
	}
	s := source(t, b.client, b.name, &b.opt)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < all; {
		began := time.Now()
		ds, err := s.Next(t.Context(), 50)
		if took := time.Since(began); err != nil || took > 6*time.Second {
			t.Errorf("Next returned %d messages, %v after %v, although messages were there", len(ds), err, took)
		}
		got += len(ds)
	}
}
