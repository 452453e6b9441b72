package semelkafka

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// unconnected is a client that reaches nobody, but knows what is paused.
func unconnected(t *testing.T) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// paused is what a client does not fetch.
func paused(cl *kgo.Client) []int32 {
	return slices.Sorted(slices.Values(cl.PauseFetchPartitions(nil)["t"]))
}

// A partition that is full while another is empty is not fetched, but it is
// again as soon as there is room.
func TestPace_RoomAgain_ResumesThePartition(t *testing.T) {
	cl := unconnected(t)
	s := apart(t, nil, queueRecords, 0)
	s.pace(cl)
	if got := paused(cl); !slices.Equal(got, []int32{0}) {
		t.Fatalf("paused are %v, want partition 0", got)
	}
	for range 2 { // it has two halves
		ds, _ := handed(t, s, 2*queueRecords)
		for _, d := range ds {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.pace(cl)
	if got := paused(cl); len(got) != 0 || s.Stats().Partitions[0].Paused {
		t.Errorf("paused are %v, though the queues are empty", got)
	}
}

// One partition has new trouble before each Next. The messages of another are handed out.
func TestHandOut_TroubleEachTime_MessagesGoOn(t *testing.T) {
	s := apart(t, nil, 1, 0)
	trouble := errors.New("partition 1 has no leader")
	s.warn(trouble)
	if ds, err := s.handOut(1); len(ds) > 0 || !errors.Is(err, trouble) {
		t.Errorf("the first Next returns %d messages, error %v; want the trouble", len(ds), err)
	}
	s.warn(trouble)
	if ds, err := s.handOut(1); len(ds) != 1 || err != nil {
		t.Errorf("the second Next returns %d messages, error %v; want the message", len(ds), err)
	}
	if _, err := s.handOut(1); !errors.Is(err, trouble) {
		t.Errorf("the third Next returns error %v, want the trouble", err)
	}
}

// The client remembers what was paused when a partition went, and the partition
// that comes back begins with an empty queue: nobody would resume it.
func TestAssigned_PausedBefore_IsResumed(t *testing.T) {
	cl := unconnected(t)
	s := apart(t, nil, queueRecords, 0)
	s.pace(cl)
	s.lost(t.Context(), cl, map[string][]int32{"t": {0}})
	s.assigned(t.Context(), cl, map[string][]int32{"t": {0}})
	s.pace(cl)
	if got := paused(cl); len(got) != 0 {
		t.Errorf("paused are %v, of a partition that has come anew", got)
	}
}

// passing is a ledger that notes what it passes over.
type passing struct {
	Ledger
	passed int
	err    error
}

func (l *passing) Pass(context.Context, Item) error {
	l.passed++
	return l.err
}

// A ledger that has passed over a message never gives it again: its letter, if
// there is to be one, is with the brokers before.
func TestPass_CopyFails_IsNotCalled(t *testing.T) {
	for action, copied := range map[driver.Action]bool{driver.DeadLetter: true, driver.Quarantine: true, driver.Ack: false} {
		s := apart(t, nil, 1)
		ds, _ := handed(t, s, 1)
		l := &passing{}
		b := &batches{s: s, l: l, held: map[string]*heldKey{}}
		w := newWorks(ds)[0]
		w.decided, w.disp = true, driver.Disposition{Action: action, Reason: driver.ReasonFailed}
		s.forget(slices.Collect(maps.Values(s.parts))) // so that no copy can be sent
		if err := b.pass(t.Context(), w); errors.Is(err, driver.ErrGone) != copied || (l.passed == 0) != copied {
			t.Errorf("%v: %v, and the ledger has passed over %d messages", action, err, l.passed)
		}
	}
}
