package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// apart is a Source without a client, that has partitions with records.
func apart(t *testing.T, o *Options, records ...int) *Source {
	t.Helper()
	s, err := New("g", []string{"t"}, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range records {
		at := partitionID{"t", int32(i)}
		s.parts[at] = newPartition(at)
		s.come(i, 0, n)
	}
	return s
}

// come is a fetch of n records of a partition.
func (s *Source) come(partition int, from int64, n int) {
	f := kgo.FetchPartition{Partition: int32(partition), HighWatermark: from + int64(n)}
	for o := range n {
		f.Records = append(f.Records, &kgo.Record{Topic: "t", Partition: int32(partition), Offset: from + int64(o), Value: []byte("v")})
	}
	s.enqueue(&kgo.FetchTopic{Topic: "t"}, &f)
}

// handed counts what was handed out, by partition.
func handed(t *testing.T, s *Source, limit int) (ds []driver.Delivery, by map[int32]int) {
	t.Helper()
	ds, err := s.handOut(limit)
	if err != nil {
		t.Fatal(err)
	}
	by = map[int32]int{}
	for _, d := range ds {
		by[d.Message().Origin.Partition]++
	}
	return ds, by
}

func TestNext_StuckPartition_LeavesPlacesForOthers(t *testing.T) {
	s := apart(t, nil, 0, 0)
	const places = 64
	taken := 0
	for i := range 20 { // nothing of partition 0 ends
		s.come(0, int64(i*100), 100)
		ds, _ := handed(t, s, places-taken)
		taken += len(ds)
	}
	if taken > places/2 {
		t.Fatalf("a partition has %d of %d places", taken, places)
	}
	s.come(1, 0, 10)
	if _, by := handed(t, s, places-taken); by[1] != 10 {
		t.Errorf("the other partition was handed out %d records of 10", by[1])
	}
	alone := apart(t, nil, 100)
	if ds, _ := handed(t, alone, places); len(ds) != places {
		t.Errorf("a partition that is alone has %d of %d places", len(ds), places)
	}
}

func TestNext_Partitions_TakeTurns(t *testing.T) {
	s := apart(t, nil, 100, 100, 100)
	if _, by := handed(t, s, 30); min(by[0], by[1], by[2]) < 7 || max(by[0], by[1], by[2]) > 8 { // and 7 places are left
		t.Errorf("of three full partitions %v were handed out", by)
	}
}

func TestNext_Outstanding_LimitsAPartition(t *testing.T) {
	s := apart(t, &Options{Outstanding: 10}, 50, 5)
	ds, by := handed(t, s, 100)
	if by[0] != 10 || by[1] != 5 {
		t.Fatalf("%v were handed out, want 10 and 5", by)
	}
	for _, d := range ds { // all but the first of partition 0
		if o := d.Message().Origin; o.Partition == 0 && o.Offset > 0 {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if more, _ := handed(t, s, 100); len(more) != 0 {
		t.Errorf("%d more were handed out behind one that is not done", len(more))
	}
	st := s.Stats().Partitions[0]
	if st.Next != 0 || st.Unfinished != 1 || st.Ahead != 9 || st.Queued != 40 || st.Lag != 50 || st.Held <= 0 {
		t.Errorf("the figures are %+v", st)
	}
	for _, d := range ds {
		if o := d.Message().Origin; o.Partition == 0 && o.Offset == 0 {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if more, _ := handed(t, s, 100); len(more) != 10 {
		t.Errorf("%d were handed out when it was done, want 10", len(more))
	}
}

// Not committing does not bring a message back; giving it back does.
func TestNak_Record_IsReturnedAgainByOffset(t *testing.T) {
	s := apart(t, &Options{Outstanding: 3}, 5)
	ds, _ := handed(t, s, 3)
	for _, i := range []int{2, 0} {
		if err := ds[i].Nak(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := ds[i].Nak(t.Context(), 0); err != nil { // its answer was lost
			t.Fatal(err)
		}
	}
	again, _ := handed(t, s, 10)
	if len(again) != 2 || again[0].Message().Origin.Offset != 0 || again[1].Message().Origin.Offset != 2 {
		t.Fatalf("%d came again", len(again))
	}
	for _, d := range []driver.Delivery{again[0], ds[1], again[1]} {
		if err := d.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if p := s.parts[partitionID{"t", 0}]; p.mark.next.offset != 3 || p.unfinished != 0 || s.taken != 0 {
		t.Errorf("the partition is at %+v, with %d unfinished", p.mark, p.unfinished)
	}
}

func TestDelivery_PartitionLost_IsErrGone(t *testing.T) {
	s := apart(t, nil, 2)
	ds, _ := handed(t, s, 2)
	s.lost(t.Context(), nil, map[string][]int32{"t": {0}})
	select {
	case <-ds[0].Revoked():
	default:
		t.Error("it is not revoked")
	}
	for name, err := range map[string]error{
		"Ack": ds[0].Ack(t.Context()), "Nak": ds[1].Nak(t.Context(), 0), "Forward": ds[1].Forward(t.Context(), driver.Quarantine, nil),
	} {
		if !errors.Is(err, driver.ErrGone) {
			t.Errorf("%s: %v, want ErrGone", name, err)
		}
	}
	s.come(0, 2, 1)
	if more, _ := handed(t, s, 10); len(more) != 0 {
		t.Error("records of a partition that is another's were handed out")
	}
}

// A log that was cut has other records at offsets that were read before.
func TestEnqueue_LogCut_ReadsAgain(t *testing.T) {
	s := apart(t, nil, 10)
	old, _ := handed(t, s, 4)
	s.come(0, 2, 3)
	if err := old[3].Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("an ack of an offset that may be another record's by now: %v", err)
	}
	ds, _ := handed(t, s, 10)
	if len(ds) != 3 || ds[0].Message().Origin.Offset != 2 {
		t.Fatalf("%d records were handed out after the cut, want 3", len(ds))
	}
	for _, d := range ds {
		if err := d.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if next := s.parts[partitionID{"t", 0}].mark.next.offset; next != 5 {
		t.Errorf("%d would be committed, want 5", next)
	}
}

// A partition waits for its handlers when it is handed over, and no longer than
// HandOver.
func TestRevoked_HandlersRun_WaitsForThem(t *testing.T) {
	s := apart(t, &Options{HandOver: time.Minute}, 3)
	ds, _ := handed(t, s, 2)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.revoked(context.Background(), nil, map[string][]int32{"t": {0}})
	}()
	<-ds[0].Revoked()
	if err := ds[0].Ack(t.Context()); err != nil {
		t.Errorf("an ack during the hand-over: %v", err)
	}
	select {
	case <-over:
		t.Error("it did not wait for what runs")
	default:
	}
	if err := ds[1].Nak(t.Context(), 0); err != nil {
		t.Errorf("a nak during the hand-over: %v", err)
	}
	<-over
	if more, err := s.handOut(10); len(more) != 0 || err != nil {
		t.Errorf("%d records of the partition were handed out afterwards, %v", len(more), err)
	}

	s = apart(t, &Options{HandOver: time.Millisecond}, 1)
	ds, _ = handed(t, s, 1)
	s.revoked(context.Background(), nil, map[string][]int32{"t": {0}})
	if err := ds[0].Ack(t.Context()); !errors.Is(err, driver.ErrGone) {
		t.Errorf("an ack after the hand-over: %v", err)
	}
}

func TestFetchedOffsets_EarlierTopic_AreRefused(t *testing.T) {
	id := [16]byte{1, 2, 3}
	for name, c := range map[string]struct {
		metadata *string
		refused  bool
	}{
		"the same topic": {metadata(id, 5, commitMetadata{after: 5}), false}, "the same topic, with markers": {metadata(id, 5, commitMetadata{after: 3}), false}, "another": {metadata([16]byte{9}, 5, commitMetadata{after: 5}), true}, "another, with markers": {metadata([16]byte{9}, 5, commitMetadata{after: 3}), true},
		"none": {nil, false}, "another program's": {kmsg.StringPtr("member-1"), false},
	} {
		s := apart(t, nil, 0)
		s.ids = map[string][16]byte{"t": id}
		resp := &kmsg.OffsetFetchResponse{Groups: []kmsg.OffsetFetchResponseGroup{{Topics: []kmsg.OffsetFetchResponseGroupTopic{{
			Topic: "t", Partitions: []kmsg.OffsetFetchResponseGroupTopicPartition{{Offset: 7, LeaderEpoch: 2, Metadata: c.metadata}},
		}}}}}
		err := s.fetchedOffsets(t.Context(), nil, resp)
		_, next := s.handOut(1)
		if (err != nil) != c.refused || errors.Is(next, driver.ErrClosed) != c.refused {
			t.Errorf("%s: %v, and Next returns %v", name, err, next)
		}
		if st := s.Stats().Partitions[0]; st.Next != 7 {
			t.Errorf("%s: the group stands at %d, want 7", name, st.Next)
		}
	}
}

func TestFailed_ClientErrors_WarnOrEndTheSource(t *testing.T) {
	at := partitionID{"orders", 3}
	for name, c := range map[string]struct {
		err    error
		closed bool
		quiet  bool
		goesOn bool // Options.OutOfRange says so
	}{
		"the wait is over":          {err: context.DeadlineExceeded, quiet: true},
		"out of range":              {err: kerr.OffsetOutOfRange, closed: true},
		"created again":             {err: fmt.Errorf("commit: %w", kerr.UnknownTopicID), closed: true},
		"not allowed":               {err: kerr.TopicAuthorizationFailed},
		"dropped":                   {err: &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}},
		"records lost":              {err: &kgo.ErrDataLoss{Topic: "orders"}, closed: true},
		"records lost, and allowed": {err: &kgo.ErrDataLoss{Topic: "orders"}, goesOn: true},
		"closed behind us":          {err: kgo.ErrClientClosed, closed: true},
		"the context is over":       {err: context.Canceled, quiet: true},
		"another topic's code":      {err: kerr.InconsistentTopicID, closed: true},
	} {
		s := apart(t, nil, 1)
		if c.goesOn {
			s.opt.OutOfRange = Earliest
		}
		s.failed(at, c.err)
		_, err := s.handOut(1)
		if errors.Is(err, driver.ErrClosed) != c.closed || (err == nil) != c.quiet {
			t.Errorf("%s: Next returns %v", name, err)
		}
		if _, again := s.handOut(1); (again != nil) != c.closed {
			t.Errorf("%s: the second Next returns %v", name, again)
		}
	}
	s := apart(t, nil, 1)
	s.commitRefused(at, kerr.RebalanceInProgress)
	if _, err := s.handOut(1); err != nil {
		t.Errorf("a commit during a rebalance is told: %v", err)
	}
	s.commitRefused(at, kerr.GroupAuthorizationFailed)
	if _, err := s.handOut(1); !errors.Is(err, kerr.GroupAuthorizationFailed) {
		t.Errorf("a commit that is not allowed: %v", err)
	}
}
