package semelpulsar

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// The broker sends a batch again as a whole, to any member.
func TestNak_BatchInWork_GoesBackAfterTheOthers(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	c.send(entryMessage(1, 0), entryMessage(1, 1), entryMessage(1, 2), entryMessage(2, 0))
	ds := take(t, s, 4)
	if err := errors.Join(ds[0].Nak(t.Context(), 0), ds[3].Nak(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "entry 2 sent back", func() bool { return len(c.sentBack()) > 0 })
	if err := ds[1].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.send(copyOf(entryMessage(1, 0))) // a copy does not come before its time
	none(t, s)
	if got := c.sentBack(); !slices.Equal(got, []int64{2}) {
		t.Fatalf("the entries %v were sent back; want 2 only, because a message of 1 is in work", got)
	}
	if err := ds[2].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "entry 1 sent back", func() bool { return slices.Equal(c.sentBack(), []int64{1, 2}) })
	c.send(copyOf(copyOf(entryMessage(1, 0))))
	take(t, s, 1)
}

// The rest of a batch does not wait for the pause of one of its messages.
func TestNak_RestOfBatchUnread_IsDelivered(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	c.send(entryMessage(1, 0), entryMessage(1, 1))
	if err := take(t, s, 1)[0].Nak(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if m := take(t, s, 1)[0].Message(); m.Origin.ID != "7:1:1" {
		t.Errorf("the next message is %s, want 7:1:1", m.Origin.ID)
	}
}

func TestNak_Delay_GoesBackNotEarlier(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	c.send(entryMessage(1, 0))
	const delay = 50 * time.Millisecond
	began := time.Now()
	if err := take(t, s, 1)[0].Nak(t.Context(), delay); err != nil {
		t.Fatal(err)
	}
	eventually(t, "sent back", func() bool { return len(c.sentBack()) == 1 })
	if took := time.Since(began); took < delay {
		t.Errorf("it goes back after %v, want at least %v", took, delay)
	}
}

// A client cannot ask the broker for no more messages.
func TestStop_UnreadAndLaterMessages_GoBack(t *testing.T) {
	t.Parallel()
	for kind, want := range map[pulsar.SubscriptionType][]int64{pulsar.Shared: {2, 3, 4}, pulsar.KeyShared: {2, 3, 4}, pulsar.Failover: nil} {
		s, client := subscribed(t, Options{Type: kind})
		c := client.last()
		c.send(entryMessage(1, 0), entryMessage(2, 0), entryMessage(3, 0))
		d := take(t, s, 1)[0]
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.send(entryMessage(4, 0), copyOf(entryMessage(1, 0))) // the broker has sent them by then
		if got := c.sentBack(); !slices.Equal(got, want) {
			t.Errorf("type %d: the entries %v were sent back, want %v", kind, got, want)
		}
		if c.isClosed() {
			t.Errorf("type %d: the consumer is closed while a message is in work, so that others get it", kind)
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !c.isClosed() {
			t.Errorf("type %d: the consumer is not closed after its last message is acked", kind)
		}
	}
}

func TestStop_NothingInWork_ClosesConsumer(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{})
	if err := s.Stop(t.Context()); err != nil || !client.last().isClosed() {
		t.Errorf("Stop: %v, the consumer is closed: %v", err, client.last().isClosed())
	}
}

// After a reconnect the client has dropped what it had received, and it comes again.
func TestArrivals_ClientDropsMessages_AreForgotten(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	for entry := range int64(5) {
		c.opt.Interceptors.BeforeConsume(pulsar.ConsumerMessage{Message: entryMessage(entry, 0)})
	}
	c.send(entryMessage(9, 0))
	take(t, s, 1)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.sentBack(); len(got) > 0 {
		t.Errorf("the entries %v are remembered, though the client has dropped them", got)
	}
}
