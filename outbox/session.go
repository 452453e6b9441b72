package outbox

import (
	"context"
	"time"
)

// session is one Run of a publisher. Only the goroutine of the method run uses its
// fields. Requests to the store and sends run in other goroutines, and report to its
// channels.
type session struct {
	p    *Publisher
	name string

	lanes map[int]*heldLane
	lease *lease // of all lanes
	busy  map[int64]*chain

	byTopic map[string]int // places of the messages that are taken and not yet settled
	largest int            // places of a large message, as the last Takes have shown

	results    []Result // to be settled
	settling   bool
	taking     bool
	most       int // messages of one Take; fewer than Batch after one that took too long
	leasing    bool
	stays      bool                    // the last request about leases has failed: no lane is given back before a renewal
	wanted     bool                    // there may be messages to take
	lastWork   time.Time               // when there were messages last
	lastSent   map[string]time.Time    // by topic, for MaxAttempts
	lastFailed map[int64]failedAttempt // the last of a message, by position, for MaxAttempts
	outages    outages                 // by topic
	nextLook   time.Time               // while topics are left out and no other has messages: when to look again
	draining   bool                    // Run's context has ended
	stopped    bool                    // Options.Drain is over

	poll    *time.Timer
	answers chan answer
	taken   chan takeReply
	settled chan settleReply
	leased  chan leaseReply
	calls   map[*sending]struct{} // calls of Publish that have not ended
}

// heldLane is a lane that the session has leased.
type heldLane struct {
	Lane
	leaving time.Time // since when it is to be given back; zero: it is not
}

// chain is the messages of one Order that are being sent. A session has it until all of
// them are settled, also if it loses their lane meanwhile.
type chain struct {
	batch     *sending
	open      int  // without an answer
	unsettled int  // with a result that the store does not have yet
	failed    bool // one of them was not sent, so the later ones are not either
}

// answer is an answer of the sink.
type answer struct {
	batch *sending
	index int
	err   error
}

// sending is one call of Publish.
type sending struct {
	taken    []Taken
	ctx      *leaseContext
	cancel   context.CancelFunc
	began    time.Time
	answered []bool
	topics   map[string]*tally
}

func newSession(p *Publisher) *session {
	return &session{
		p: p, name: p.uniqueName(),
		lanes: map[int]*heldLane{}, busy: map[int64]*chain{}, byTopic: map[string]int{}, calls: map[*sending]struct{}{},
		lastSent: map[string]time.Time{}, lastFailed: map[int64]failedAttempt{}, outages: outages{},
		largest: 1, most: min(firstTake, p.opt.Batch), wanted: true, lastWork: time.Now(),
		answers: make(chan answer, 1024), taken: make(chan takeReply), settled: make(chan settleReply), leased: make(chan leaseReply),
	}
}

// run is the session until ctx ends and everything is settled and given back.
func (s *session) run(ctx context.Context) {
	// Requests to the store and sends go on while the session drains.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.lease = newLease(lasting)
	defer func() { s.lease.end() }()
	renew := time.NewTicker(s.p.opt.Lease / 3)
	defer renew.Stop()
	s.poll = time.NewTimer(0)
	defer s.poll.Stop()
	woken, end := s.p.store.Woken(), ctx.Done()
	drain := time.NewTimer(time.Hour)
	drain.Stop()
	defer drain.Stop()
	s.renew(lasting)
	for {
		s.take(lasting)
		s.settle(lasting)
		s.leave(lasting)
		if s.draining && len(s.calls) == 0 && len(s.results) == 0 && !s.taking && !s.settling && !s.leasing {
			s.releaseAll(lasting)
			return
		}
		select {
		case <-end:
			end, s.draining = nil, true
			drain.Reset(s.p.opt.Drain)
		case <-drain.C:
			if s.stopped {
				stop() // requests to a store that does not answer end, too
				s.abandon()
				continue
			}
			s.stopped = true
			s.lease.end() // the calls of the sink end; another publisher repeats what has no answer
			drain.Reset(stopGrace)
		case <-renew.C:
			s.renew(lasting)
		case <-s.lease.over:
			s.loseAll(lasting)
		case <-woken:
			s.wanted = true
		case <-s.poll.C:
			s.wanted = true
		case r := <-s.leased:
			s.onLease(lasting, r)
		case r := <-s.taken:
			s.onTake(lasting, r)
			s.poll.Reset(s.pollAfter())
		case a := <-s.answers:
			s.onAnswer(lasting, a)
			s.moreAnswers(lasting)
		case r := <-s.settled:
			s.onSettle(lasting, r)
		}
	}
}

// stopGrace is how long the sink may take to answer after its context has ended.
const stopGrace = time.Second

// moreAnswers takes the answers that are already there, so that one settlement has them.
func (s *session) moreAnswers(ctx context.Context) {
	for {
		select {
		case a := <-s.answers:
			s.onAnswer(ctx, a)
		default:
			return
		}
	}
}

// pollAfter is when to look for messages again.
func (s *session) pollAfter() time.Duration {
	after := s.p.opt.Poll
	if time.Since(s.lastWork) < awake {
		after = min(awakePoll, after)
	}
	now := time.Now()
	_, next := s.outages.paused(now, now.Add(after))
	return next.Sub(now)
}
