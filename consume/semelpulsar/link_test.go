package semelpulsar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
)

// After a reconnect the broker sends everything again that is not acked.
func TestNext_MessageHere_CopyIsNoDelivery(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	first := entryMessage(1, 0)
	client.last().send(first)
	d := take(t, s, 1)[0]
	client.last().send(copyOf(first))
	none(t, s)
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := client.last().acks(); !slices.Equal(got, []string{"1.0 copy 1"}) {
		t.Errorf("the acks are %q; want the one of the newest copy", got)
	}
	client.last().send(copyOf(copyOf(first))) // it was on its way
	take(t, s, 1)
}

// Without acks of parts of batches the broker waits for the acks of one copy of a batch.
func TestAck_CopyComesMeanwhile_IsAckedToo(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c, first := client.last(), entryMessage(1, 0)
	c.send(first)
	d := take(t, s, 1)[0]
	copied := false
	c.onAck = func([]pulsar.MessageID) error {
		if !copied {
			copied = true
			c.send(copyOf(first))
			none(t, s)
		}
		return nil
	}
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.acks(); !slices.Equal(got, []string{"1.0 copy 0", "1.0 copy 1"}) {
		t.Errorf("the acks are %q; want both copies", got)
	}
}

func TestAck_PartOfRequestFails_OnlyThatIsAnError(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	begun, release := make(chan struct{}), make(chan struct{})
	c.onAck = func(ids []pulsar.MessageID) error {
		if len(ids) == 1 && ids[0].EntryID() == 0 {
			close(begun)
			<-release
			return nil
		}
		failed := pulsar.AckError{}
		for _, id := range ids {
			if id.EntryID() == 2 {
				failed[id] = errors.New("MetadataError")
			}
		}
		return failed
	}
	results := make([]chan error, 4)
	for i := range results {
		c.send(entryMessage(int64(i), 0))
		d := take(t, s, 1)[0]
		results[i] = make(chan error, 1)
		go func() { results[i] <- d.Ack(context.Background()) }()
		if i == 0 {
			<-begun
		}
	}
	l := s.link.Load()
	eventually(t, "three acks waiting", func() bool {
		l.acks.mu.Lock()
		defer l.acks.mu.Unlock()
		return len(l.acks.partitions[0].waiting) == 3
	})
	close(release)
	for i, r := range results {
		if err := <-r; (err != nil) != (i == 2) {
			t.Errorf("the ack of message %d: %v", i, err)
		}
	}
	if len(c.acked) != 2 {
		t.Errorf("%d requests, want 2: the acks that wait share one", len(c.acked))
	}
}

// While the client connects again, its call hangs.
func TestAck_ClientHangs_EndsWithContext(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	c := client.last()
	begun, release := make(chan struct{}), make(chan struct{})
	c.onAck = func([]pulsar.MessageID) error {
		close(begun)
		<-release
		return nil
	}
	c.send(entryMessage(1, 0), entryMessage(2, 0))
	ds := take(t, s, 2)
	first := make(chan error, 1)
	go func() { first <- ds[0].Ack(context.Background()) }()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := ds[1].Ack(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second ack: %v, want the end of its context", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the first ack: %v", err)
	}
	if got := client.last().acks(); !slices.Equal(got, []string{"1.0 copy 0"}) {
		t.Errorf("the acks are %q; nobody waits for the second one", got)
	}
}

func TestAck_ConsumerClosed_IsErrGone(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	client.last().send(entryMessage(1, 0))
	d := take(t, s, 1)[0]
	client.last().onAck = func(ids []pulsar.MessageID) error {
		return pulsar.AckError{ids[0]: errors.New("consumer state is closed")}
	}
	if err := d.Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Ack: %v, want ErrGone", err)
	}
	client.last().Close()
	if _, err := s.Next(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Next: %v, want ErrClosed", err)
	}
}

func TestInfo_Again_EndsEarlierDeliveries(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	earlier := client.last()
	earlier.send(entryMessage(1, 0))
	d := take(t, s, 1)[0]
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the earlier consumer closed", earlier.isClosed)
	if err := d.Nak(t.Context(), 0); !errors.Is(err, driver.ErrGone) {
		t.Errorf("Nak: %v, want ErrGone", err)
	}
}

// The client gives up a consumer whose topic does not exist, and does not tell.
func TestNext_ClientHasGivenUp_SubscribesAgain(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	dead := client.last()
	dead.probeErr = errors.New("connection closed")
	// A Next waits for a second, and the next one sees the answer.
	s.link.Load().asked = time.Now().Add(-2 * probeEvery)
	eventually(t, "subscribed again", func() bool {
		if ds, err := s.Next(t.Context(), 1); err != nil || len(ds) > 0 {
			t.Fatalf("Next: %d messages, %v", len(ds), err)
		}
		return client.last() != dead && !client.last().isClosed()
	})
	eventually(t, "the dead consumer closed", dead.isClosed)
	client.last().send(entryMessage(1, 0))
	take(t, s, 1)

	client.refuse = map[string]error{"persistent://public/default/orders": errors.New("server error: TopicNotFound: no")}
	client.last().probeErr = errors.New("connection closed")
	s.link.Load().asked = time.Now().Add(-2 * probeEvery)
	var err error
	eventually(t, "closed", func() bool {
		_, err = s.Next(t.Context(), 1)
		return err != nil
	})
	if !errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), "pulsar-admin topics create") {
		t.Errorf("Next: %v, want ErrClosed with the next step", err)
	}
}

func TestHealth_NoAnswer_IsReported(t *testing.T) {
	t.Parallel()
	l := newLink(&Source{topic: "orders", opt: Options{ReceiverQueue: 1}})
	now := time.Now()
	l.probe = &probe{began: now, done: make(chan probed)}
	if broken, isNew, err := l.health(now.Add(probeTimeout)); broken || isNew || err != nil {
		t.Errorf("in time: broken %v, new %v, %v", broken, isNew, err)
	}
	for _, first := range []bool{true, false} {
		if broken, isNew, err := l.health(now.Add(probeTimeout + time.Second)); broken || isNew != first || err == nil || !strings.Contains(err.Error(), "has not answered for 16s") {
			t.Errorf("after the time: broken %v, new %v, %v", broken, isNew, err)
		}
	}
}
