package semelpulsar

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
)

// The client (0.19.0) connects a partition again in its event loop, so that an ack returns
// when the partition is back, and one request for several partitions waits for all of them.
func TestAck_OnePartitionUnavailable_OthersAreAcked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Shared})
		c := client.last()
		back := make(chan struct{})
		c.onAck = func(ids []pulsar.MessageID) error {
			for _, id := range ids {
				if id.PartitionIdx() == 0 {
					<-back
				}
			}
			return nil
		}
		c.send(fakeMessage{id: fakeID{entry: 1, partition: 0}}, fakeMessage{id: fakeID{entry: 2, partition: 1}})
		ds := take(t, s, 2)
		waits := make(chan error, 1)
		go func() { waits <- ds[0].Ack(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := ds[1].Ack(ctx); err != nil {
			t.Errorf("the ack of a message of partition 1 waits for partition 0: %v", err)
		}
		close(back)
		if err := <-waits; err != nil {
			t.Error(err)
		}
		s.link.Load().abandon()
	})
}

// busy is a message each second in partition 0, until the deadline or until end reports true.
func busy(t *testing.T, s *Source, client *fakeClient, end func(err error) bool) (ended bool) {
	t.Helper()
	for i := range 600 {
		client.last().send(fakeMessage{id: fakeID{entry: int64(i), partition: 0}})
		ds, err := s.Next(t.Context(), 10)
		if end(err) {
			return true
		}
		for _, d := range ds {
			if err := d.Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
	}
	return false
}

// The client gives up each partition by itself: after "TopicNotFound" the partition stays
// without a connection, and the client tells nobody.
func TestNext_OnePartitionGivenUp_TopicIsBusy_SubscribesAgain(t *testing.T) {
	for name, subscription := range map[string]pulsar.SubscriptionType{"shared": pulsar.Shared, "exclusive": pulsar.Exclusive} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := subscribed(t, Options{Type: subscription})
				dead := client.last()
				dead.probeErr = errors.New("failed to getLastMessageID: connection closed")
				if !busy(t, s, client, func(err error) bool {
					if err != nil {
						t.Error(err)
					}
					return client.last() != dead
				}) {
					t.Errorf("in ten minutes the Source asked the broker %d times, and did not subscribe again", dead.probed)
				}
				synctest.Wait()
				if !dead.isClosed() {
					t.Error("the consumer of the partition that was given up is open")
				}
				s.link.Load().abandon()
			})
		})
	}
}

// An exclusive subscription takes no second member, so that the Source must close its
// consumer to subscribe again. While the broker of the partition is away, it keeps it.
func TestNext_OnePartitionGivenUpAndAway_ExclusiveReadsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Exclusive})
		const topic = "persistent://public/default/orders"
		client.partitions, client.gaveUp = []string{topic + "-partition-0", topic + "-partition-1"}, topic+"-partition-1"
		client.refuse = map[string]error{client.gaveUp: errors.New("server error: ServiceNotReady")}
		old := client.last()
		old.probeErr = errors.New("failed to getLastMessageID: connection closed")
		reports := 0
		busy(t, s, client, func(err error) bool {
			if err != nil {
				reports++
				if errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), client.gaveUp) {
					t.Error(err)
				}
			}
			return old.isClosed()
		})
		if old.isClosed() || reports == 0 {
			t.Fatalf("closed: %v, reports: %d; want the consumer open, and that it is reported", old.isClosed(), reports)
		}
		client.mu.Lock()
		client.refuse = nil
		client.mu.Unlock()
		if !busy(t, s, client, func(error) bool { return s.link.Load().consumer != old }) {
			t.Error("the broker is back, and the Source has not subscribed again")
		}
		s.link.Load().abandon()
	})
}

// The broker takes no second member, also not for a partition that is only tried: the next
// member would be refused as busy, and its Serve would end.
func TestStopAndInfo_PartitionIsTried_WaitForItsConsumer(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, s *Source) error{
		"Stop": func(ctx context.Context, s *Source) error { return s.Stop(ctx) },
		"Info": func(ctx context.Context, s *Source) error { _, err := s.Info(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := subscribed(t, Options{Type: pulsar.Exclusive})
				client.gaveUp = "persistent://public/default/orders-partition-1"
				client.partitions = []string{client.gaveUp}
				var tried atomic.Bool
				answer := make(chan struct{})
				client.onGaveUp = func() {
					tried.Store(true)
					<-answer
				}
				client.last().probeErr = errors.New("failed to getLastMessageID: connection closed")
				for !tried.Load() {
					if _, err := s.Next(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
				}
				ended := make(chan error, 1)
				go func() { ended <- end(t.Context(), s) }()
				synctest.Wait()
				if len(ended) > 0 {
					t.Error("it has returned while a partition is tried")
				}
				close(answer)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				for _, c := range client.consumers {
					if c.opt.Topic == client.gaveUp && !c.isClosed() {
						t.Error("it has returned, and the consumer of the partition that was tried is open")
					}
				}
				s.link.Load().abandon()
			})
		})
	}
}

// The client (0.19.0) panics when it is closed, or asked, after it could not subscribe to a
// partition that was added. So it looks for none, and the Source subscribes again.
func TestNext_PartitionAdded_SubscribesAgain(t *testing.T) {
	for name, subscription := range map[string]pulsar.SubscriptionType{"shared": pulsar.Shared, "exclusive": pulsar.Exclusive} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := subscribed(t, Options{Type: subscription})
				old := client.last()
				if old.opt.AutoDiscoveryPeriod < 365*24*time.Hour {
					t.Errorf("the client looks for partitions each %v", old.opt.AutoDiscoveryPeriod)
				}
				const topic = "persistent://public/default/orders"
				client.partitions = []string{topic + "-partition-0", topic + "-partition-1"}
				if !busy(t, s, client, func(err error) bool {
					if err != nil {
						t.Error(err)
					}
					return s.link.Load().consumer != old
				}) {
					t.Error("in ten minutes the Source has not subscribed again")
				}
				whole := s.link.Load().consumer
				busy(t, s, client, func(error) bool { return s.link.Load().consumer != whole })
				if synctest.Wait(); !old.isClosed() || s.link.Load().consumer != whole {
					t.Errorf("the old consumer is closed: %v; want that, and no third one", old.isClosed())
				}
				s.link.Load().abandon()
			})
		})
	}
}

// A connection that was lost a moment ago is no partition that was given up.
func TestNext_OneProbeFails_StaysSubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Shared})
		c := client.last()
		c.probeErr = errors.New("connection closed")
		c.onProbe = func() {
			if c.probes() > 0 { // the second question
				c.mu.Lock()
				c.probeErr = nil
				c.mu.Unlock()
			}
		}
		for range 100 {
			if _, err := s.Next(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if client.last() != c || c.probes() < 3 {
			t.Errorf("after %d questions the Source has subscribed again", c.probes())
		}
		s.link.Load().abandon()
	})
}

// While messages of other partitions come, Next says once that a partition gives no answer.
func TestNext_OnePartitionUnavailable_TopicIsBusy_IsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Shared})
		back := make(chan struct{})
		client.last().onProbe = func() { <-back }
		reports := 0
		busy(t, s, client, func(err error) bool {
			if err != nil {
				reports++
				if !strings.Contains(err.Error(), "has not answered for") {
					t.Error(err)
				}
			}
			return false
		})
		if reports != 1 {
			t.Errorf("%d reports, want one", reports)
		}
		close(back)
		s.link.Load().abandon()
	})
}

// Stop comes while the broker is slow to answer a probe, which then fails because the consumer
// is closed. The subscription is for the next member.
func TestStop_DuringProbeOfExclusive_SubscribesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := subscribed(t, Options{Type: pulsar.Exclusive})
		const topic = "persistent://public/default/orders"
		client.partitions = []string{topic + "-partition-0", topic + "-partition-1"}
		c := client.last()
		c.probeErr = errors.New("failed to getLastMessageID: connection closed")
		c.onProbe = func() { <-c.closed }
		time.Sleep(probeEvery + time.Second)
		if _, err := s.Next(t.Context(), 1); err != nil { // it begins a probe
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if last := client.last(); last != c {
			t.Errorf("after Stop the Source has subscribed to %q", last.opt.Topic)
		}
	})
}

// Stop comes while the partitions are tried.
func TestTryPartitions_LinkEndsBetweenThem_SubscribesNoMore(t *testing.T) {
	s, client := subscribed(t, Options{Type: pulsar.Exclusive})
	client.partitions = []string{"orders-partition-0", "orders-partition-1"}
	looks := 0
	if err := s.tryPartitions(func() bool { looks++; return looks > 2 }); err != nil {
		t.Error(err)
	}
	if last := client.last(); last.opt.Topic != "orders-partition-0" {
		t.Errorf("the last subscription is to %q, want partition 0", last.opt.Topic)
	}
	s.link.Load().abandon()
}
