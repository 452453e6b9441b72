package semelpulsar

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// Another member of a failover subscription becomes the active one, and gets what is not
// acked.
func TestFailover_MemberInactive_MessagesAreRevoked(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Failover})
	c := client.last()
	other := entryMessage(1, 0)
	other.id.partition = 1
	c.send(entryMessage(1, 0), other)
	ds := take(t, s, 2)
	c.opt.EventListener.BecameInactive(c, "orders-partition-0", 0)
	for i, want := range []bool{true, false} {
		isRevoked := false
		select {
		case <-ds[i].Revoked():
			isRevoked = true
		default:
		}
		if isRevoked != want {
			t.Errorf("partition %d: revoked: %v, want %v", i, isRevoked, want)
		}
	}
	if err := ds[0].Nak(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := c.sentBack(); len(got) > 0 {
		t.Errorf("the entries %v were sent back, which would begin the other member's messages again", got)
	}
	c.send(copyOf(entryMessage(1, 0))) // it is active again
	take(t, s, 1)
}

// The messages that no Next has returned are the other member's, too: here they would
// overtake those that the other member gets again.
func TestFailover_MemberInactive_UnreadMessagesAreDropped(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Failover})
	c := client.last()
	other := entryMessage(3, 0)
	other.id.partition = 1
	c.send(entryMessage(1, 0), entryMessage(2, 0), other)
	take(t, s, 1)
	c.opt.EventListener.BecameInactive(c, "orders-partition-0", 0)
	if m := take(t, s, 1)[0].Message(); m.Origin.ID != "7:3:0" {
		t.Errorf("the next message is %s, want 7:3:0 of the other partition", m.Origin.ID)
	}
	c.send(copyOf(entryMessage(1, 0)), copyOf(entryMessage(2, 0))) // it is active again
	for i, d := range take(t, s, 2) {
		if want := fmt.Sprintf("7:%d:0", i+1); d.Message().Origin.ID != want {
			t.Errorf("message %d is %s, want %s", i, d.Message().Origin.ID, want)
		}
	}
	none(t, s)
}

// The broker may forget to send the active member of a failover subscription what has no
// ack. To send a message back makes it send all that.
func TestFailover_IdleMember_AsksForMessagesWithoutAck(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Failover})
	c := client.last()
	c.mu.Lock()
	c.lastIDs = make([]pulsar.TopicMessageID, 2)
	c.mu.Unlock()
	s.link.Load().asked = time.Now().Add(-2 * probeEvery)
	eventually(t, "asked for the two partitions", func() bool {
		if ds, err := s.Next(t.Context(), 1); err != nil || len(ds) > 0 {
			t.Fatalf("Next: %d messages, %v", len(ds), err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.nacked) == 2 && c.nacked[0].PartitionIdx() == 0 && c.nacked[1].PartitionIdx() == 1
	})
}

// The broker sends all messages of the partition again for each such question, also those that
// are here: a slow handler must not make it send them every ten seconds.
func TestFailover_MessagesAreHere_AsksRarely(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Failover})
	c := client.last()
	c.send(entryMessage(1, 0), entryMessage(2, 0))
	ds := take(t, s, 2)
	c.mu.Lock()
	c.lastIDs = make([]pulsar.TopicMessageID, 2)
	c.mu.Unlock()
	l, now := s.link.Load(), time.Now()
	probed := func(n int) (asked int) {
		for range n {
			now = now.Add(probeEvery + time.Second)
			_, _, _ = l.health(now)
			eventually(t, "the end of the probe", func() bool {
				_, _, err := l.health(now)
				return err == nil && l.probe == nil
			})
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, id := range c.nacked {
			if id.PartitionIdx() == 0 {
				asked++
			}
		}
		return asked
	}
	const rarely = 5 // after 11, 33, 77, 165 and 330 s
	if n := probed(35); n != rarely {
		t.Errorf("asked %d times in %v, want %d", n, 35*(probeEvery+time.Second), rarely)
	}
	end := func() {
		t.Helper()
		for _, d := range ds {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.send(entryMessage(3, 0))
	ds = append(ds, take(t, s, 1)...)
	if n := probed(2); n != rarely {
		t.Errorf("asked %d times after one message, of three that are here", n-rarely)
	}
	end() // messages flow
	for i := range 2 {
		c.send(entryMessage(int64(4+i), 0))
	}
	ds = take(t, s, 2)
	if n := probed(4); n != rarely+2 { // after 11 and 33 s
		t.Errorf("asked %d times in 44 s after messages have come, want 2", n-rarely)
	}
	end()
	if n := probed(2); n != rarely+4 {
		t.Errorf("asked %d times after the last ack, want at each probe", n-rarely-2)
	}
}
