package semelkafka

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// join makes the client, which joins the group, or finds the one that has.
func (s *Source) join() (*kgo.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
		return nil, s.broken
	case s.closing:
		return nil, fmt.Errorf("%w: semelkafka: Close was called", driver.ErrClosed)
	case s.client != nil:
		return s.client, nil
	}
	cl, quit, err := s.newMember()
	if err != nil {
		s.breakOff(err)
		return nil, s.broken
	}
	s.client, s.quit, s.stop = cl, quit, make(chan struct{})
	s.loop.Go(func() { s.committer(s.stop) })
	return cl, nil
}

// fetchWait is how long a broker keeps a fetch that finds nothing: as long at
// most does a partition wait that is read again after a pause.
const fetchWait = 500 * time.Millisecond

// options are the client's: what the user may change, the user's, and what a
// Source needs. The caller holds mu.
func (s *Source) options() []kgo.Opt {
	limits := s.limits
	first := []kgo.Opt{
		kgo.ClientID("semel"),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
	}
	last := []kgo.Opt{
		kgo.ConsumerGroup(s.group),
		kgo.ConsumeTopics(s.topics...),
		kgo.ConsumeStartOffset(s.opt.Start.offset()),
		kgo.ConsumeResetOffset(s.opt.OutOfRange.offset()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.OnOffsetsFetched(s.fetchedOffsets),
		kgo.AdjustFetchOffsetsFn(s.adjust),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(), // a copy may be given up, and sent again with the same driver.LetterID
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if n, ok := limits[topic]; ok {
				return n
			}
			return defaultMessageBytes
		}),
		kgo.WithHooks(&dialWatch{s}),
	}
	return slices.Concat(first, s.opt.Client, last)
}

// defaultMessageBytes is what a topic takes unless it says otherwise.
const defaultMessageBytes = 1_000_012

// offset is the position in the client's terms.
func (p Position) offset() kgo.Offset {
	switch p {
	case Latest:
		return kgo.NewOffset().AtEnd()
	case Refuse:
		return kgo.NoResetOffset()
	default:
		return kgo.NewOffset().AtStart()
	}
}

// dialWatch is told of each attempt to connect.
type dialWatch struct{ s *Source }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (w *dialWatch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		err = fmt.Errorf("%s: %w", net.JoinHostPort(meta.Host, fmt.Sprint(meta.Port)), err)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.dialed = err
}
