package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Source is a member of a consumer group as a driver.Source. It is safe for
// concurrent use. It joins the group with the first Next and leaves it with
// Close.
type Source struct {
	group  string
	topics []string
	opt    Options

	places driver.CopyChecks // the topics of copies

	polling sync.Mutex // held during a poll, until its records are in the queues
	owning  sync.Mutex // held during a call of the ledger's Own
	commits sync.Mutex // held during a commit, from reading the watermarks on

	mu         sync.Mutex
	client     *kgo.Client        // nil: not joined
	copies     *producer          // sends by the client
	quit       context.CancelFunc // ends the client's pending requests
	ledger     Ledger             // nil: of ServeBatches, none
	limits     map[string]int32
	ids        map[string][16]byte // of the topics, as Info saw them
	parts      map[partitionID]*partition
	turn       int           // the partition that handOut begins with
	taken      int           // deliveries that are not settled
	rebalances int           // times that partitions came or went
	changed    chan struct{} // has one when Next is to look again
	moved      chan struct{} // has one when a watermark has moved
	ended      chan struct{} // closed and replaced when a delivery of a leaving partition ends
	halted     int           // goroutines in withoutPolls; polls wait for them
	interrupt  context.CancelFunc
	trouble    error // the error of the next Next
	reported   bool  // the last Next has returned trouble
	broken     error // no message will come any more
	dialed     error // why the last attempt to connect failed; nil: it did not, or a fetch has succeeded since
	closing    bool
	stop       chan struct{}  // closed when the committer is to end
	loop       sync.WaitGroup // the committer

	// startPartitions is how many partitions a topic had when the group began at its end; zero:
	// the group's commits do not tell. mu guards it.
	startPartitions map[string]int32
}

// New makes a Source of a consumer group's topics. It does no I/O, and its
// error names every mistake in its arguments.
func New(group string, topics []string, o *Options) (*Source, error) {
	s := &Source{
		group: group, topics: slices.Clone(topics), opt: o.withDefaults(group), parts: map[partitionID]*partition{},
		startPartitions: map[string]int32{}, changed: make(chan struct{}, 1), moved: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	var errs []error
	if group == "" {
		errs = append(errs, errors.New("group: is empty"))
	}
	if len(topics) == 0 || slices.Contains(topics, "") {
		errs = append(errs, errors.New("topics: must name at least one topic, and none by an empty name"))
	}
	for _, t := range []string{s.opt.DeadLetters, s.opt.Quarantine} {
		if slices.Contains(topics, t) {
			errs = append(errs, fmt.Errorf("topics: %q is consumed and takes copies, which would be consumed, too; name another topic", t))
		}
	}
	if err := kgo.ValidateOpts(s.options()...); err != nil {
		errs = append(errs, fmt.Errorf("options: Client: %w", err))
	} else if err := s.checkClient(); err != nil {
		errs = append(errs, fmt.Errorf("options: Client: %w", err))
	}
	if err := errors.Join(append(errs, s.opt.check())...); err != nil {
		return nil, fmt.Errorf("semelkafka: %w", err)
	}
	return s, nil
}

// The least and the most records that one poll asks for.
const (
	minPoll = 32
	maxPoll = 1000
)

// Next implements driver.Source.
func (s *Source) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	cl, err := s.join()
	if err != nil {
		return nil, err
	}
	n := min(max(limit, minPoll), maxPoll)
	wait, cancel := context.WithTimeout(ctx, s.opt.PollWait)
	defer cancel()
	if s.wants(limit) {
		s.poll(nil, cl, n) //nolint:staticcheck // without a context the client returns its records, and does not wait
	}
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ds, err := s.handOut(limit)
		s.pace(cl)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		if wait.Err() != nil {
			return nil, s.unreachable()
		}
		s.await(wait, cl, n, s.wants(limit))
	}
}

// Stop implements driver.Source. It has nothing to do: a message that is given
// back stays with this member, in the order of its offset, and goes to another
// with its partition, when Close leaves the group.
func (s *Source) Stop(context.Context) error { return nil }

// nextFull returns exactly limit messages, or none. It does not wait.
func (s *Source) nextFull(limit int) (ds []driver.Delivery, err error) {
	cl, err := s.join()
	if err != nil {
		return nil, err
	}
	if n, rest := s.ready(); n < limit && rest < limit { // otherwise the queues would fill up
		s.poll(nil, cl, maxPoll) //nolint:staticcheck // as in Next
	}
	if n, _ := s.ready(); n >= limit {
		ds, err = s.handOut(limit)
	}
	s.pace(cl)
	return ds, err
}

// ready counts the queued records that can be returned, and the rest, which are
// too far beyond an unfinished one.
func (s *Source) ready() (n, rest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		can := max(0, min(len(p.queue), s.opt.Outstanding-len(p.mark.entries)))
		n, rest = n+can, rest+len(p.queue)-can
	}
	return n, rest
}

// unreachable returns an error if no broker can be reached, which may be why no
// message came.
func (s *Source) unreachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialed == nil {
		return nil
	}
	return fmt.Errorf("semelkafka: a broker cannot be reached: %w", s.dialed)
}

// handOut returns records from the queues, from each partition in turn. It
// takes no more of a partition than there are places left, so that one with
// unfinished records does not take all.
func (s *Source) handOut(limit int) (ds []driver.Delivery, _ error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	if err := s.trouble; err != nil && !s.reported { // not each time, because the caller pauses after it
		s.trouble, s.reported = nil, true
		return nil, err
	}
	s.reported = false
	ready, most := make([]*partition, 0, len(s.parts)), 0
	for _, p := range s.parts {
		if len(p.queue) > 0 {
			ready, most = append(ready, p), most+len(p.queue)
		}
	}
	most = min(most, limit)
	ds = make([]driver.Delivery, 0, most)
	slices.SortFunc(ready, func(a, b *partition) int { return a.compare(b.partitionID) })
	for i := s.turn; len(ready) > 0 && len(ds) < limit; i++ {
		i %= len(ready)
		p := ready[i]
		if len(p.queue) == 0 || len(p.mark.entries) >= s.opt.Outstanding && p.queue[0].r.Offset >= p.mark.end() ||
			!p.batched && len(s.parts) > 1 && p.unfinished-p.waiting >= limit-len(ds) {
			ready = slices.Delete(ready, i, i+1)
			i--
			continue
		}
		it := p.pop(now)
		s.taken++
		ds = append(ds, &delivery{s: s, p: p, item: it})
	}
	s.turn++
	return ds, nil
}
