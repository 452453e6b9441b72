package outage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/test/internal/figure"
)

// batchLoad is workers that handle messages in transactions, each those of one partition,
// and how long the calls of the library took in the outage.
type batchLoad struct {
	t      *testing.T
	st     *pgstore.Store
	atomic *pgstore.Atomic
	limit  time.Duration
	down   atomic.Bool
	over   atomic.Pointer[time.Time] // when the measurement ended; nil: it goes on

	began, ok, refused, doubt atomic.Int64 // messages that were taken, and calls
	longest, longestRun       atomic.Int64 // of a call without a run, and of one with a run
}

// batchSize is how many messages a transaction has.
const batchSize = 5

// effects is the handler. Its statement has a limit of its own. It reports its time to ran.
func (l *batchLoad) effects(ran *time.Duration, ids []int64) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		began := time.Now()
		defer func() { *ran += time.Since(began) }()
		<-time.After(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(ctx, l.limit)
		defer cancel()
		_, err := tx.Exec(ctx, "INSERT INTO effect SELECT unnest($1::bigint[])", ids)
		return err
	}
}

// note notes how a call ended that began at a time, and worked for ran in its handler. A
// call that began after the measurement does not count.
func (l *batchLoad) note(began time.Time, ran time.Duration, err error) {
	if over := l.over.Load(); over != nil && began.After(*over) {
		return
	}
	if !l.down.Load() {
		switch {
		case err == nil:
			l.ok.Add(1)
		case !tookTooLong(err):
			l.t.Errorf("before the outage: %v", err)
		}
		return
	}
	to := &l.longest
	if ran > 0 {
		to = &l.longestRun
	}
	raise(to, time.Since(began)-ran)
	switch {
	case errors.Is(err, semel.ErrInDoubt):
		l.doubt.Add(1)
	case err != nil:
		l.refused.Add(1)
	}
}

// raise sets a longest time.
func raise(longest *atomic.Int64, took time.Duration) {
	for was := longest.Load(); int64(took) > was && !longest.CompareAndSwap(was, int64(took)); was = longest.Load() {
	}
}

// take is the ids of the next messages.
func (l *batchLoad) take() (ids []int64) {
	last := l.began.Add(batchSize)
	for id := last - batchSize + 1; id <= last; id++ {
		ids = append(ids, id)
	}
	return ids
}

// batches handles messages by RunBatch until ctx ends, and then until each is done.
func (l *batchLoad) batches(ctx context.Context, answers <-chan struct{}) {
	run := func(ids []int64) (done bool) {
		calls := make([]semel.Call, len(ids))
		for i, id := range ids {
			calls[i] = semel.Call{Operation: "op", Tenant: "t", Key: strconv.FormatInt(id, 10), Payload: semel.NoPayload()}
		}
		began, ran := time.Now(), time.Duration(0)
		results := l.atomic.RunBatch(context.Background(), calls, func(ctx context.Context, newCalls []*pgstore.PendingCall) error {
			var ids []int64
			for _, c := range newCalls {
				id, _ := strconv.ParseInt(calls[c.Index].Key, 10, 64)
				ids = append(ids, id)
			}
			tx, _ := pgstore.TxFrom(ctx)
			return l.effects(&ran, ids)(ctx, tx)
		})
		var err error
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		l.note(began, ran, err)
		return err == nil
	}
	var open [][]int64
	for ctx.Err() == nil {
		if ids := l.take(); !run(ids) {
			open = append(open, ids)
		}
	}
	<-answers
	for _, ids := range open {
		for end := time.Now().Add(time.Minute); !run(ids) && time.Now().Before(end); {
			<-time.After(20 * time.Millisecond)
		}
	}
}

// offsets handles messages by a watermark of its own until ctx ends, and then until each is
// done.
func (l *batchLoad) offsets(ctx context.Context, answers <-chan struct{}, partition int32) {
	at := pgkafka.TopicPartition{Consumer: "c", Topic: "t", Partition: partition}
	var w *pgkafka.Watermark
	var batches [][]int64 // by their place in the partition
	run := func(n int64) (done bool) {
		if w == nil {
			began := time.Now()
			owned, err := pgkafka.Own(context.Background(), l.st, at, 0)
			l.note(began, 0, err)
			if err != nil {
				return false
			}
			w = owned
		}
		if w.Next() > n {
			return true // an earlier try has committed
		}
		began, ran := time.Now(), time.Duration(0)
		err := w.Do(context.Background(), pgkafka.Span{First: n, Next: n + 1}, l.effects(&ran, batches[n]))
		l.note(began, ran, err)
		if err != nil {
			w = nil // as kafkapg does
		}
		return err == nil
	}
	n := int64(0)
	for ctx.Err() == nil {
		if int64(len(batches)) == n {
			batches = append(batches, l.take())
		}
		if run(n) {
			n++
		}
	}
	<-answers
	for end := time.Now().Add(time.Minute); n < int64(len(batches)) && time.Now().Before(end); {
		if run(n) {
			n++
		} else {
			<-time.After(20 * time.Millisecond)
		}
	}
}

// A server freezes, or is cut off, while batches and watermarks are at work, whose callers
// have no deadline. Each call returns within StoreTimeout, or within StoreTimeout for COMMIT
// and as long again for the question what became of it; the time of the handler does not
// count. When the server answers again, the same partitions go on, and each message has one
// effect.
func TestServerGivesNoAnswer_BatchesAndWatermarksReturnWithinLimit(t *testing.T) {
	limit, _ := limits()
	for kind, work := range map[string]func(ctx context.Context, l *batchLoad, answers <-chan struct{}, n int32){
		"batch":     func(ctx context.Context, l *batchLoad, answers <-chan struct{}, _ int32) { l.batches(ctx, answers) },
		"watermark": func(ctx context.Context, l *batchLoad, answers <-chan struct{}, n int32) { l.offsets(ctx, answers, n) },
	} {
		for harm, act := range map[string]func(t *testing.T, srv *pgtest.Server, r *relay, on bool){
			"frozen":  func(t *testing.T, srv *pgtest.Server, _ *relay, on bool) { freeze(t, srv.DataDir(), on) },
			"cut off": func(_ *testing.T, _ *pgtest.Server, r *relay, on bool) { r.cut.Store(on) },
		} {
			t.Run(kind+" "+harm, func(t *testing.T) {
				srv := pgtest.Start(t, pgtest.Durable...)
				addr := "127.0.0.1:" + strconv.Itoa(srv.Port())
				direct, err := pgxpool.New(t.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
				if err != nil {
					t.Fatal(err)
				}
				defer direct.Close()
				if _, err := direct.Exec(t.Context(), "CREATE TABLE effect (id bigint PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
				r := newRelay(t, addr)
				if harm == "cut off" {
					addr = r.addr()
				}
				st, err := pgstore.Open(t.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable&pool_max_conns=16", &pgstore.Options{StoreTimeout: limit, MaxIdleTx: 2 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				a, err := pgstore.NewAtomic(st, &semel.Options{StoreTimeout: limit})
				if err != nil {
					t.Fatal(err)
				}
				l := &batchLoad{t: t, st: st, atomic: a, limit: limit}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				answers, ended := make(chan struct{}), make(chan struct{})
				var all sync.WaitGroup
				for n := range int32(6) {
					all.Go(func() { work(ctx, l, answers, n) })
				}
				late := measureDelays()
				go func() { all.Wait(); close(ended) }()
				waitForCalls(t, &l.ok, 30)
				l.down.Store(true)
				act(t, srv, r, true)
				<-time.After(5 * limit)
				now := time.Now()
				l.over.Store(&now)
				stop()
				act(t, srv, r, false)
				close(answers)
				select {
				case <-ended:
				case <-time.After(3 * time.Minute):
					t.Fatal("calls hang")
				}
				most, mostRun, longestDelay := time.Duration(l.longest.Load()), time.Duration(l.longestRun.Load()), late()
				if allowed := slack + longestDelay; most > limit+allowed || mostRun > 2*limit+allowed {
					t.Errorf("a call without a run took %v, limit %v; one with a run %v besides its handler, limit %v; timers were up to %v late", most, limit, mostRun, 2*limit, longestDelay)
				}
				if l.refused.Load()+l.doubt.Load() == 0 {
					t.Error("no call was refused")
				}
				var n int64
				if err := direct.QueryRow(t.Context(), "SELECT count(*) FROM effect").Scan(&n); err != nil || n != l.began.Load() {
					t.Errorf("after the outage %d messages of %d have an effect, %v", n, l.began.Load(), err)
				}
				figure.Report(t, figure.Figure{
					Claim: "a " + kind + " without a deadline returns within its limit and a second when PostgreSQL is " + harm + " under load, and each message has one effect", Where: "PostgreSQL",
					Trials: l.began.Load(), Failures: l.began.Load() - n,
					Detail: fmt.Sprintf("limit %v: the longest wait was %v, and %v with a run (limit %v); %d calls were refused, %d in doubt",
						limit, most.Round(time.Millisecond), mostRun.Round(time.Millisecond), 2*limit, l.refused.Load(), l.doubt.Load()),
				})
			})
		}
	}
}
