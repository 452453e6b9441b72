package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kerr"
)

// The connection breaks at COMMIT, before the server has it or before its
// answer arrives. The ledger finds out whether it committed, and no message
// runs twice.
func TestServeBatches_CommitUnanswered_RunsOnce(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, f form) {
		commit := map[form]string{keyed: "COMMIT", offsets: "commit\x00"}[f]
		for name, after := range map[string]bool{"after": true, "before": false} {
			t.Run(name, func(t *testing.T) {
				_, seed := fake(t)
				br, b := open(t, seed), openBank(t)
				through, c := b.behindCutter(t, after)
				through.member(t, f, br.source(t, nil), nil, nil)
				const n = 8
				for i := range n {
					c.at(commit)
					ms := numbered(string(rune('a'+i)), 10, "")
					br.to(t, 0, ms[:5]...)
					br.to(t, 1, ms[5:]...)
					br.settled(t)
				}
				if keys, double := tally(b.effects(t)); keys != 10*n || double > 0 {
					t.Errorf("%d of %d messages have an effect, %d are double", keys, 10*n, double)
				}
				if got := c.cuts.Load(); got != n {
					t.Errorf("%d cuts, want %d", got, n)
				}
				if n := len(br.Copies(t, driver.DeadLetter)); n > 0 {
					t.Errorf("%d messages were dead-lettered", n)
				}
			})
		}
	})
}

// The server goes down under load, and comes back: also while a partition is
// to be owned.
func TestServeBatches_PostgreSQLRestarts_GoesOn(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	for _, f := range []form{keyed, offsets} {
		t.Run(string(f), func(t *testing.T) {
			_, seed := fake(t)
			br, b := open(t, seed), openBankAt(t, srv.URL(), "down_"+string(f))
			const n, rounds = 600, 3
			sent := 0
			var down, resumed atomic.Int64
			observe := &consume.Options{Observe: func(_ context.Context, e consume.Event) {
				switch e.Kind {
				case consume.EventOutage, consume.EventReceiveFailed:
					down.Add(1)
				case consume.EventResumed:
					resumed.Add(1)
				}
			}}
			b.member(t, f, br.source(t, nil), nil, observe)
			for round := range rounds {
				prefix := string(rune('a' + round))
				br.to(t, 0, numbered(prefix, n, "")...)
				until(t, "some done", func() bool { return len(b.effects(t)) > round*n+sent })
				before := down.Load()
				srv.Kill()
				if round == rounds-1 && f == offsets { // one that joins while it is down owns nothing until it is back
					b.member(t, f, br.source(t, nil), nil, observe)
				}
				until(t, "noticed", func() bool { // the server's last processes may still answer
					sent++
					br.to(t, 1, msg(fmt.Sprint("x", sent), ""))
					return down.Load() > before
				})
				if err := srv.Start(); err != nil {
					t.Fatal(err)
				}
				br.settled(t)
			}
			if keys, double := tally(b.effects(t)); keys != rounds*n+sent || double > 0 {
				t.Errorf("%d of %d messages have an effect, %d are double", keys, rounds*n+sent, double)
			}
			if n := len(br.Copies(t, driver.DeadLetter)); n > 0 {
				t.Errorf("%d messages were dead-lettered", n)
			}
			if resumed.Load() == 0 {
				t.Error("nobody was told that it is back")
			}
		})
	}
}

// A partition goes to another member in the middle of a transaction. One that
// ends in time is committed; by offsets, one that does not is refused, and by
// keys the other finds it in progress.
func TestServeBatches_RebalanceDuringTransaction_RunsOnce(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		for name, inTime := range map[string]bool{"in time": true, "too late": false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// The transaction has what had come by then, and a partition that
				// moves may not be of that.
				for try := 1; !rebalanceAmid(t, seed, f, inTime); try++ {
					if try == 10 {
						t.Fatal("the partitions that moved were never in the transaction")
					}
				}
			})
		}
	})
}

// rebalanceAmid is false if no partition that moved was in the transaction.
func rebalanceAmid(t *testing.T, seed string, f form, inTime bool) bool {
	br, b := open(t, seed), openBank(t)
	for p := range int32(partitions) {
		br.to(t, p, numbered(string('a'+p), 10, "")...)
	}
	entered, release := make(chan []*consume.Message, 100), make(chan struct{})
	slow := func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		err := b.write(ctx, tx, ms)
		entered <- ms
		for err == nil { // keep the transaction busy, because the server ends idle ones
			select {
			case <-release:
				return nil
			case <-time.After(100 * time.Millisecond):
				_, err = tx.Exec(ctx, "SELECT 1")
			}
		}
		return err
	}
	first := br.source(t, func(o *semelkafka.Options) {
		if inTime {
			o.HandOver = session // until it is released
		}
	})
	var refused atomic.Int64
	b.member(t, f, first, slow, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventGivenUp || e.Kind == consume.EventReturned {
			refused.Add(1)
		}
	}})
	in := map[int32]bool{}
	for _, m := range wait(t, "in a transaction", entered) {
		in[m.Origin.Partition] = true
	}
	second := br.source(t, nil)
	b.member(t, f, second, nil, nil)
	met := inTime
	if inTime {
		until(t, "a partition on its way", func() bool { return first.Stats().Rebalances > 1 })
	} else {
		until(t, "a partition with the second", func() bool { return len(second.Stats().Partitions) > 0 })
		for _, p := range second.Stats().Partitions {
			met = met || in[p.Partition]
		}
	}
	close(release)
	br.settled(t)
	if keys, double := tally(b.effects(t)); keys != 10*partitions || double > 0 {
		t.Errorf("%d of %d messages have an effect, %d are double", keys, 10*partitions, double)
	}
	if met && !inTime {
		until(t, "told that a partition is gone", func() bool { return refused.Load() > 0 })
	}
	return met
}

// The offsets of a topic that was created again begin at 0. The old topic's
// watermark would skip its first messages.
func TestServeBatches_WatermarkOfAnEarlierTopic_IsRefused(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	of := pgkafka.TopicPartition{Consumer: br.name, Topic: br.name, TopicID: "an earlier one", Partition: 0}
	if _, err := pgkafka.Own(t.Context(), b.st, of, 3); err != nil {
		t.Fatal(err)
	}
	br.to(t, 0, msg("a", ""))
	done := make(chan error, 1)
	s := br.source(t, nil)
	go func() { done <- b.serve(t.Context(), offsets, s, nil, nil) }()
	if err := wait(t, "Serve ended", done); !errors.Is(err, pgkafka.ErrRecreated) || !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	b.want(t)
	if err := pgkafka.Forget(t.Context(), b.st, br.name, br.name); err != nil {
		t.Fatal(err)
	}
	b.member(t, offsets, br.source(t, nil), nil, nil)
	br.settled(t)
	b.want(t, "a")
}

// The topic is deleted and created again while it is read.
func TestServeBatches_TopicRecreated_Returns(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, msg("a", ""), msg("b", ""))
		done := make(chan error, 1)
		s := br.source(t, nil)
		go func() { done <- b.serve(t.Context(), f, s, nil, nil) }()
		br.settled(t)
		if _, err := br.adm.DeleteTopic(t.Context(), br.name); err != nil {
			t.Fatal(err)
		}
		until(t, "created again", func() bool {
			r, err := br.adm.CreateTopic(t.Context(), partitions, 1, nil, br.name)
			return errors.Join(err, r.Err) == nil
		})
		if err := wait(t, "Serve ended", done); !errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), "created again") {
			t.Errorf("Serve: %v", err)
		}
		b.want(t, "a", "b")
	})
}

// The messages after the watermark were deleted unread, or the log ends before
// it. Serve does not go on silently.
func TestServeBatches_LogCut_Returns(t *testing.T) {
	everywhere(t, logCut)
}

func logCut(t *testing.T, seed string) {
	for name, at := range map[string]int64{"its beginning was deleted": 1, "its end is before the watermark": 9} {
		for _, policy := range []semelkafka.Position{semelkafka.Refuse, semelkafka.Earliest} {
			t.Run(name+", "+policy.String(), func(t *testing.T) {
				t.Parallel()
				br, b := open(t, seed), openBank(t)
				br.to(t, 0, numbered("m", 5, "")...)
				br.cut(t, 3)
				s := br.source(t, func(o *semelkafka.Options) { o.OutOfRange = policy })
				if _, err := s.Info(t.Context()); err != nil {
					t.Fatal(err)
				}
				ids, err := br.adm.ListTopics(t.Context(), br.name)
				if err != nil {
					t.Fatal(err)
				}
				of := pgkafka.TopicPartition{Consumer: br.name, Topic: br.name, TopicID: strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(ids[br.name].ID.String()), "="), Partition: 0}
				if _, err := pgkafka.Own(t.Context(), b.st, of, at); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- b.serve(ctx, offsets, s, nil, nil) }()
				if policy == semelkafka.Earliest && at < 3 { // people have allowed it
					br.settled(t)
					b.want(t, "m003", "m004")
					return
				}
				err = wait(t, "Serve ended", done)
				if !errors.Is(err, driver.ErrClosed) || policy == semelkafka.Refuse && !errors.Is(err, kerr.OffsetOutOfRange) || policy != semelkafka.Refuse && !strings.Contains(err.Error(), "the log was cut") {
					t.Errorf("Serve: %v", err)
				}
				b.want(t)
			})
		}
	}
}

// Where to begin is the watermark's to say, whatever Kafka has.
func TestServeBatches_Watermark_IsWhereItBegins(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, numbered("m", 10, "")...)
		s := br.source(t, nil)
		stop := b.member(t, offsets, s, nil, nil)
		br.settled(t)
		if err := errors.Join(stop(), s.Close()); err != nil {
			t.Fatal(err)
		}
		br.rewind(t) // Kafka says 0, the watermark 10
		br.to(t, 0, msg("next", ""))
		s = br.source(t, nil)
		stop = b.member(t, offsets, s, nil, nil)
		br.settled(t)
		if err := errors.Join(stop(), s.Close()); err != nil {
			t.Fatal(err)
		}
		if got, want := b.effects(t), append(bodies(numbered("m", 10, "")...), "next"); !slices.Equal(got, want) {
			t.Errorf("the effects are %q, want %q", got, want)
		}
		if _, err := b.pool.Exec(t.Context(), "UPDATE "+pgx.Identifier{b.schema, "semel_watermark"}.Sanitize()+" SET next_offset = 9 WHERE partition = 0; DELETE FROM "+b.table()+" WHERE at >= 9"); err != nil {
			t.Fatal(err) // the database was restored from a backup, with its effects
		}
		b.member(t, offsets, br.source(t, nil), nil, nil)
		until(t, "done again", func() bool { return len(b.effects(t)) == 11 })
		if got, want := b.effects(t), append(bodies(numbered("m", 10, "")...), "next"); !slices.Equal(got, want) {
			t.Errorf("after the restore the effects are %q, want %q", got, want)
		}
	})
}
