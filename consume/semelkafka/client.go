package semelkafka

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// join returns the client, or makes it, which joins the group.
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
	s.copies = newProducer(cl, slices.Concat(s.outside(), copyOptions(), largeCopies())...)
	s.loop.Go(func() { s.committer(s.stop) })
	return cl, nil
}

// fetchWait is how long a broker holds a fetch that finds no records: a resumed
// partition waits at most that long.
const fetchWait = 500 * time.Millisecond

// options are the client's options: defaults, then the user's, then those that
// a Source needs. The caller holds mu.
func (s *Source) options() []kgo.Opt {
	limits := s.limits // of batches before compression; see producer
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
		kgo.ConsumeResetOffset(s.opt.reset()),
		kgo.KeepControlRecords(), // so that the position moves past the markers of transactions
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(s.assigned),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.lost),
		kgo.OnOffsetsFetched(s.fetchedOffsets),
		kgo.AdjustFetchOffsetsFn(s.adjust),
		kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
			if n, ok := limits[topic]; ok {
				return n
			}
			return defaultMessageBytes
		}),
		kgo.WithHooks(&dialWatch{s}),
	}
	return slices.Concat(first, s.opt.Client, last, copyOptions())
}

// outside are the user's options without topics. A client with topics would join the group, and
// get partitions that nobody polls.
func (s *Source) outside() []kgo.Opt {
	return append(slices.Clone(s.opt.Client), kgo.ConsumeTopics())
}

// newClient is kgo.NewClient, with an error if a hook panics. A hook may accept one client
// only, as kprom.Metrics does while another client is open.
func newClient(opts ...kgo.Opt) (cl *kgo.Client, err error) {
	defer func() {
		if p := recover(); p != nil {
			cl, err = nil, fmt.Errorf("semelkafka: a hook does not accept a further client with the same options, as kprom.Metrics does not; leave the hook out (kgo.WithHooks): %v", p)
		}
	}()
	return kgo.NewClient(opts...)
}

// copyOptions are the options of each client that sends copies.
func copyOptions() []kgo.Opt {
	return []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.DisableIdempotentWrite(), // a copy may be sent twice, with the same driver.LetterID
		kgo.ProducerLinger(0),
	}
}

// largeCopies are the options of the client for copies that are too large for the member's.
// It compresses them, because their producer may have.
func largeCopies() []kgo.Opt {
	const most = 1 << 30 // bytes, of the client
	return []kgo.Opt{kgo.BrokerMaxWriteBytes(most), kgo.ProducerBatchMaxBytes(most), kgo.ProducerBatchCompression(kgo.ZstdCompression(), kgo.GzipCompression())}
}

// checkClient refuses options of the user with which a Source does not work.
func (s *Source) checkClient() error {
	cl, err := s.plainClient()
	if err != nil {
		return err
	}
	defer cl.Close()
	if blocks, ok := cl.OptValue(kgo.BlockRebalanceOnPoll).(bool); ok && blocks {
		return errors.New("has kgo.BlockRebalanceOnPoll, with which no partition could be assigned after the first poll; leave it out: the Source itself waits for its handlers in a rebalance")
	}
	return nil
}

// defaultMessageBytes is the limit of a topic without a setting of its own.
const defaultMessageBytes = 1_000_012

// offset is the position for the client.
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

// reset is the client's own reaction to a position that is not in the log. The
// Source itself moves to the end, because it must commit that position.
func (o *Options) reset() kgo.Offset {
	if o.OutOfRange == Latest {
		return kgo.NoResetOffset()
	}
	return o.OutOfRange.offset()
}

// dialWatch keeps the result of each attempt to connect. A fetch that succeeds, on another
// connection, ends the failure, because the client connects again only when it
// needs to.
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

// OnBrokerRead implements kgo.HookBrokerRead.
func (w *dialWatch) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err != nil || key != kmsg.Fetch.Int16() {
		return
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.dialed = nil
}
