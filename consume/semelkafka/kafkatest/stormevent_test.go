package kafkatest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leased is the form of a Consumer: a message is one call of a Guard, whose
// handler has a transaction of its own.
const leased form = "leased"

// stormAttempts is MaxAttempts. Messages that must have an effect fail less often.
const stormAttempts = 20

// stormy is a member of a storm.
type stormy struct {
	n    int
	b    *bank
	src  *semelkafka.Source
	line *line // to Kafka
	stop context.CancelFunc
	done chan error
}

// join adds a member.
func (s *storm) join() {
	b, err := newBank(context.Background(), s.bank.url+"&application_name="+s.who, s.bank.schema)
	if err != nil {
		s.t.Fatal(err)
	}
	m := &stormy{n: s.joined, b: b, line: &line{}, done: make(chan error, 1)}
	o := s.br.opt
	o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.Dialer(m.line.dial))
	if m.src, err = semelkafka.New(s.br.name, []string{s.br.name}, &o); err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	s.joined++
	s.members = append(s.members, m)
	go func() { m.done <- s.serve(ctx, m) }()
}

// step is a decision about a record. A record has few of them, whatever happens, because its
// attempts have a limit. So a storm that goes in circles makes no progress.
type step struct {
	origin  string
	action  driver.Action
	attempt int
}

// advance notes a step. The group's offsets alone do not show progress: they stay while a
// message that fails has its attempts.
func (s *storm) advance(e consume.Event) {
	if e.Message == nil || e.Kind != consume.EventDecided && e.Kind != consume.EventSettled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[step{e.Message.Origin.ID, e.Disposition.Action, min(e.Disposition.Attempt, stormAttempts)}] = true
}

// progress is how many different steps there were.
func (s *storm) progress() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps)
}

func (s *storm) serve(ctx context.Context, m *stormy) error {
	o := &consume.Options{MaxAttempts: stormAttempts, Drain: 5 * time.Second, Backoff: func(int) time.Duration { return 5 * time.Millisecond }, Observe: func(_ context.Context, e consume.Event) {
		s.advance(e)
		switch d := e.Disposition; {
		case e.Message == nil:
			s.note("member %d: %v: %v", m.n, e.Kind, e.Err)
		case e.Kind != consume.EventDecided || d.Attempt > 0 && d.Reason != driver.ReasonDone:
			s.note("member %d: %v: %d:%d, %s, which %s: %v, %v, attempt %d: %v, %v", m.n, e.Kind, e.Message.Origin.Partition, e.Message.Origin.Offset, e.Message.Body, s.fate(string(e.Message.Body)), d.Action, d.Reason, d.Attempt, d.Err, e.Err)
		}
	}}
	h := s.handler(m.b)
	if s.form != leased {
		return m.b.serve(ctx, s.form, m.src, h, o)
	}
	g, err := semel.New(m.b.st, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	o.AllowShortRetention = true
	c, err := consume.New(g, consume.Keyed("bank", consume.FromHeader(consume.KeyHeader)), func(ctx context.Context, _ *semel.Execution, msg *consume.Message) error {
		return pgx.BeginFunc(ctx, m.b.pool, func(tx pgx.Tx) error { return h(ctx, tx, []*consume.Message{msg}) })
	}, o)
	if err != nil {
		return err
	}
	return c.Serve(ctx, m.src)
}

// leave ends a member. One that is cut off cannot say so.
func (s *storm) leave(m *stormy) {
	m.stop()
	err := wait(s.t, "Serve ended", m.done)
	cerr := m.src.Close()
	m.b.close()
	s.note("member %d has left: %v, %v", m.n, err, cerr)
	if err != nil && m.line.fault() == nil {
		s.t.Errorf("member %d: Serve: %v", m.n, err)
	}
}

// requests are the requests that fail, with their errors.
var requests = []struct {
	key  kmsg.Key
	errs []*kerr.Error
}{
	{kmsg.OffsetCommit, []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.UnknownServerError}},
	{kmsg.Heartbeat, []*kerr.Error{kerr.RebalanceInProgress, kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.NotCoordinator}},
	{kmsg.JoinGroup, []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.UnknownMemberID}},
	{kmsg.SyncGroup, []*kerr.Error{kerr.NotCoordinator, kerr.RebalanceInProgress, kerr.UnknownMemberID}},
	{kmsg.OffsetFetch, []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.UnstableOffsetCommit}},
	{kmsg.FindCoordinator, []*kerr.Error{kerr.CoordinatorNotAvailable}},
	{kmsg.Fetch, []*kerr.Error{kerr.NotLeaderForPartition, kerr.KafkaStorageError, kerr.UnknownServerError, kerr.FencedLeaderEpoch, kerr.OffsetNotAvailable}},
	{kmsg.ListOffsets, []*kerr.Error{kerr.NotLeaderForPartition, kerr.LeaderNotAvailable}},
	{kmsg.Produce, []*kerr.Error{kerr.NotEnoughReplicas, kerr.TopicAuthorizationFailed, kerr.NotLeaderForPartition, kerr.UnknownServerError}},
}

// event has some things fail.
func (s *storm) event(r *rand.Rand, keys []string) {
	m := s.members[r.IntN(len(s.members))]
	switch n := r.IntN(12); {
	case n < 3:
		s.failRequest(r)
	case n < 6:
		kill := []string{"pg_terminate_backend", "pg_cancel_backend"}[r.IntN(2)]
		s.note("EVENT: %s", kill)
		_, _ = s.bank.pool.Exec(context.Background(), "SELECT "+kill+"(pid) FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL ORDER BY random() LIMIT 1", s.who)
	case n < 7:
		d := time.Duration(r.IntN(300)) * time.Millisecond
		s.note("EVENT: the table is locked for %v", d)
		s.others.Go(func() { s.lockTable(d) })
	case n < 8:
		s.note("EVENT: member %d: its connections to Kafka break", m.n)
		m.line.drop()
	case n < 10 && s.form != offsets:
		which := slices.Clone(keys[max(0, len(keys)-30):])
		r.Shuffle(len(which), func(i, j int) { which[i], which[j] = which[j], which[i] })
		which, d := which[:min(len(which), 3)], time.Duration(r.IntN(200))*time.Millisecond
		s.note("EVENT: %q run elsewhere, each for %v", which, d)
		s.others.Go(func() { s.elsewhere(s.runner(), which, d) })
	default:
		s.move(r)
	}
}

func (s *storm) failRequest(r *rand.Rand) {
	f := requests[r.IntN(len(requests))]
	fault := kfake.Fault{Keys: []kmsg.Key{f.key}, Err: f.errs[r.IntN(len(f.errs))], Count: 1 + r.IntN(3)}
	if f.key == kmsg.Produce {
		fault.Topic = s.br.opt.DeadLetters
	}
	s.note("EVENT: %s fails, %d times: %v", f.key.Name(), fault.Count, fault.Err)
	s.faults = append(s.faults, s.c.Fault(fault))
}

func (s *storm) lockTable(d time.Duration) {
	_ = pgx.BeginFunc(context.Background(), s.bank.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), "SET LOCAL lock_timeout = '300ms'; LOCK TABLE "+s.bank.table()+" IN SHARE MODE")
		if err == nil {
			<-time.After(d)
		}
		return err
	})
}

// runner is another process that runs calls of the same kind.
func (s *storm) runner() semel.Runner {
	o := &semel.Options{Retention: consume.DefaultRetention}
	if s.form == leased {
		g, err := semel.New(s.bank.st, o)
		if err != nil {
			panic(err)
		}
		return g
	}
	a, err := pgstore.NewAtomic(s.bank.st, o)
	if err != nil {
		panic(err)
	}
	return a
}

// move has members come and go.
func (s *storm) move(r *rand.Rand) {
	if len(s.cutOff) > 0 && r.IntN(2) == 0 {
		m := s.cutOff[0]
		if s.cutOff = s.cutOff[1:]; r.IntN(2) == 0 {
			s.note("EVENT: member %d is back", m.n)
			m.line.mend()
			s.members = append(s.members, m)
		} else {
			s.others.Go(func() { s.leave(m) })
		}
		return
	}
	if len(s.members) < 2 || len(s.members) < 4 && r.IntN(2) == 0 {
		s.note("EVENT: member %d joins", s.joined)
		s.join()
		return
	}
	i := r.IntN(len(s.members))
	m := s.members[i]
	if s.members = slices.Delete(s.members, i, i+1); r.IntN(2) == 0 {
		s.note("EVENT: member %d leaves", m.n)
		s.others.Go(func() { s.leave(m) })
		return
	}
	s.note("EVENT: member %d is cut off from Kafka", m.n)
	m.line.cut()
	s.cutOff = append(s.cutOff, m)
}
