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

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// numbered are messages with keys of their own.
func numbered(prefix string, n int, orderKey string) (ms []consume.Message) {
	for i := range n {
		ms = append(ms, msg(fmt.Sprintf("%s%03d", prefix, i), orderKey))
	}
	return ms
}

// bodies are what the messages' effects should be.
func bodies(ms ...consume.Message) (keys []string) {
	for _, m := range ms {
		keys = append(keys, string(m.Body))
	}
	return keys
}

// want compares all effects, in any order.
func (b *bank) want(t testing.TB, keys ...string) {
	t.Helper()
	got := b.effects(t)
	slices.Sort(got)
	slices.Sort(keys)
	if !slices.Equal(got, keys) {
		t.Errorf("the effects are %q, want %q", got, keys)
	}
}

// A whole poll is one transaction, and the order of a partition stays.
func TestServeBatches_Poll_IsOneTransaction(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		ms := numbered("m", 200, "")
		br.to(t, 0, ms...)
		var sizes []int
		stop := b.member(t, f, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			sizes = append(sizes, len(ms))
			return b.write(ctx, tx, ms)
		}, nil)
		br.settled(t)
		if err := stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if got, want := b.effects(t), bodies(ms...); !slices.Equal(got, want) {
			t.Errorf("the effects are %q", got)
		}
		if len(sizes) > 20 {
			t.Errorf("200 messages were handled in %d transactions: %v", len(sizes), sizes)
		}
	})
}

// A message that its producer sent twice has one effect by its key, and two by
// its offset. A message that Kafka redelivers has one effect in both forms.
func TestServeBatches_Duplicates_ByKeyOrOffset(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, msg("a", ""), msg("b", ""), msg("a", ""))
		br.to(t, 1, msg("b", ""))
		first := br.source(t, nil)
		stop := b.member(t, f, first, nil, nil)
		br.settled(t)
		if err := errors.Join(stop(), first.Close()); err != nil {
			t.Fatal(err)
		}
		br.rewind(t)
		br.to(t, 2, msg("c", ""))
		b.member(t, f, br.source(t, nil), nil, nil)
		br.settled(t)
		if f == keyed {
			b.want(t, "a", "b", "c")
		} else {
			b.want(t, "a", "a", "b", "b", "c")
		}
	})
}

// A message that fails is copied before the watermark passes it, and delays
// only the messages that must not overtake it.
func TestServeBatches_PoisonMessage_DeadLettersItAlone(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, f form) {
		c, seed := fake(t)
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, msg("before", "o"), msg("bad", "o"), msg("behind", "o"))
		br.to(t, 1, numbered("other", 20, "")...)
		var refused atomic.Int64
		fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: br.opt.DeadLetters, Err: kerr.TopicAuthorizationFailed, Count: -1})
		b.member(t, f, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			if err := b.write(ctx, tx, ms); err != nil {
				return err
			}
			if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "bad" }) {
				return &semel.Failure{Code: "declined", Message: "no"}
			}
			return nil
		}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			if e.Kind == consume.EventSettleFailed {
				refused.Add(1)
			}
		}})
		until(t, "refused, and the others done", func() bool { return refused.Load() > 2 && br.committed(t, 1) == 20 })
		if at := br.committed(t, 0); at != 1 {
			t.Errorf("offset %d is committed though the letter of 1 was refused", at)
		}
		if f == offsets {
			if at := b.watermark(t, br, 0); at != 1 {
				t.Errorf("the watermark is at %d though the letter of 1 was refused", at)
			}
		}
		fault.Remove()
		br.settled(t)
		b.want(t, append(bodies(numbered("other", 20, "")...), "before", "behind")...)
		letters := br.Copies(t, driver.DeadLetter)
		if len(letters) != 1 || string(letters[0].Body) != "bad" {
			t.Fatalf("%d letters", len(letters))
		}
		for name, want := range map[string]string{
			driver.LetterTopic: br.name, driver.LetterPartition: "0", driver.LetterOffset: "1",
			driver.LetterReason: string(driver.ReasonFailed), driver.LetterCode: "declined",
		} {
			if got, _ := letters[0].Header(name); got != want {
				t.Errorf("header %s is %q, want %q", name, got, want)
			}
		}
		if f == offsets {
			if at := b.watermark(t, br, 0); at != 3 {
				t.Errorf("the watermark is at %d, want 3", at)
			}
		}
	})
}

// A message that fails for a while is tried again; nothing overtakes it that
// must not. At last it is a dead letter.
func TestServeBatches_FailsForAWhile_IsNotOvertaken(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		br.to(t, 0, msg("first", "o"), msg("flaky", "o"), msg("third", "o"), msg("hopeless", "o"), msg("fifth", "o"), msg("panics", "o"), msg("last", "o"))
		var flaky, hopeless atomic.Int64
		b.member(t, f, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			if err := b.write(ctx, tx, ms); err != nil {
				return err
			}
			for _, m := range ms {
				alone := len(ms) == 1
				switch body := string(m.Body); {
				case body == "flaky" && flaky.Load() < 2:
					if alone {
						flaky.Add(1)
					}
					return errDead
				case body == "hopeless":
					if alone {
						hopeless.Add(1)
					}
					return errDead
				case body == "panics":
					panic("no")
				}
			}
			return nil
		}, &consume.Options{MaxAttempts: 3})
		br.settled(t)
		if got, want := b.effects(t), []string{"first", "flaky", "third", "fifth", "last"}; !slices.Equal(got, want) {
			t.Errorf("the effects are %q, want %q", got, want)
		}
		letters := br.Copies(t, driver.DeadLetter)
		if len(letters) != 2 {
			t.Fatalf("%d letters", len(letters))
		}
		for _, l := range letters {
			if why, _ := l.Header(driver.LetterReason); why != string(driver.ReasonExhausted) {
				t.Errorf("the letter of %q has the reason %q", l.Body, why)
			}
		}
		if n := hopeless.Load(); n != 3 {
			t.Errorf("the hopeless one was tried %d times alone, want 3", n)
		}
	})
}

// Messages that arrive during the retries of an earlier one wait if they must
// not overtake it.
func TestServeBatches_Retry_LaterMessagesOfItsKeyWait(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		elsewhere := map[form]int32{keyed: 0, offsets: 1}[f]
		var failed atomic.Int64
		var mended atomic.Bool
		b.member(t, f, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			if !mended.Load() && slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "flaky" }) {
				failed.Add(1)
				return errDead
			}
			return b.write(ctx, tx, ms)
		}, &consume.Options{MaxAttempts: -1, Backoff: func(int) time.Duration { return time.Second }})
		br.to(t, 0, msg("flaky", "o"))
		until(t, "failed", func() bool { return failed.Load() > 0 })
		br.to(t, 0, msg("later", "o"))
		br.to(t, elsewhere, msg("free", "p"))
		until(t, "the free one done", func() bool { return len(b.effects(t)) > 0 })
		mended.Store(true)
		br.settled(t)
		if got, want := b.effects(t), []string{"free", "flaky", "later"}; !slices.Equal(got, want) {
			t.Errorf("the effects are %q, want %q", got, want)
		}
	})
}

// Serve ends under load: the running batch ends, the rest is left, and the next
// member goes on.
func TestServeBatches_ShutdownUnderLoad_LosesNoMessage(t *testing.T) {
	formsEverywhere(t, func(t *testing.T, f form, seed string) {
		br, b := open(t, seed), openBank(t)
		const n = 3000
		go func() {
			for i := range n / 100 {
				br.to(t, int32(i%partitions), numbered(fmt.Sprint(i, "/"), 100, "")...)
			}
		}()
		for round := range 4 {
			s := br.source(t, nil)
			stop := b.member(t, f, s, nil, nil)
			until(t, "some progress", func() bool { return len(b.effects(t)) >= n*(round+1)/6 })
			began := time.Now()
			if err := errors.Join(stop(), s.Close()); err != nil {
				t.Errorf("the end: %v", err)
			}
			if d := time.Since(began); d > 20*time.Second {
				t.Errorf("it took %v to end", d)
			}
		}
		b.member(t, f, br.source(t, nil), nil, nil)
		until(t, "all done", func() bool { return len(b.effects(t)) >= n })
		br.settled(t)
		if keys, double := tally(b.effects(t)); keys != n || double > 0 {
			t.Errorf("%d of %d messages have an effect, %d are double", keys, n, double)
		}
	})
}

func TestServeBatches_InvalidUse_IsRefused(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	for _, f := range []form{keyed, offsets} {
		if err := b.serve(t.Context(), f, nil, b.write, nil); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("without a source: %v", err)
		}
	}
	s := br.source(t, nil)
	stop := b.member(t, offsets, s, nil, nil)
	br.to(t, 0, msg("a", ""))
	br.settled(t)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := b.serve(t.Context(), offsets, s, nil, nil); err == nil || !strings.Contains(err.Error(), "served before") {
		t.Errorf("the second time: %v", err)
	}
	served := br.source(t, nil)
	take(t, served, 0)
	if err := served.ServeBatches(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "served before") {
		t.Errorf("after Next: %v", err)
	}
	if err := br.source(t, func(o *semelkafka.Options) { o.DeadLetters = "nowhere" }).ServeBatches(t.Context(), nil, nil); err == nil {
		t.Error("without a topic for dead letters it was served")
	}
}
