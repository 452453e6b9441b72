package kafkatest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// bulky is a handler that fails with much to say.
func bulky(context.Context, *semel.Execution, *consume.Message) error {
	return semel.Final(errors.New(strings.Repeat("no ", 1000)))
}

// A letter says where it comes from, and is with all replicas before the offset
// moves.
func TestForward_BeforeTheOffsetMoves_IsStored(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	b.to(t, 1, msg("first", ""), msg("bad", "o"))
	var acks, refused atomic.Int64
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: b.opt.DeadLetters, Err: kerr.TopicAuthorizationFailed, Count: -1, When: func(r kmsg.Request) bool {
		acks.Store(int64(r.(*kmsg.ProduceRequest).Acks))
		return true
	}})
	serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if m.Key == "bad" {
			return &semel.Failure{Code: "declined", Message: "no"}
		}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettleFailed {
			refused.Add(1)
		}
	}}), b.source(t, nil))
	until(t, "refused and the first committed", func() bool { return refused.Load() > 2 && b.committed(t, 1) == 1 })
	if at := b.committed(t, 1); at != 1 || acks.Load() != -1 {
		t.Errorf("offset %d is committed though its letter was refused; acks=%d", at, acks.Load())
	}
	fault.Remove()
	b.settled(t)
	letters := b.records(t, b.opt.DeadLetters)
	if len(letters) != 1 || string(letters[0].Key) != "o" || string(letters[0].Value) != "bad" {
		t.Fatalf("%d letters", len(letters))
	}
	l := b.Copies(t, driver.DeadLetter)[0]
	for name, want := range map[string]string{
		driver.LetterTopic: b.name, driver.LetterPartition: "1", driver.LetterOffset: "1", driver.LetterReason: string(driver.ReasonFailed),
		driver.LetterCode: "declined", driver.LetterKey: "bad", driver.LetterGroup: "kafkatest",
	} {
		if got, _ := l.Header(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	at, _ := l.Header(driver.LetterPublished)
	if d, err := time.Parse(time.RFC3339Nano, at); err != nil || time.Since(d) > time.Hour {
		t.Errorf("published %q", at)
	}
}

// resize gives the broker topics that take messages of so many bytes.
func (b *broker) resize(t testing.TB, limit int) {
	t.Helper()
	most := strconv.Itoa(limit)
	b.name += ".resized"
	b.opt.DeadLetters, b.opt.Quarantine = b.name+".dead", b.name+".quarantine"
	for _, topic := range []string{b.name, b.opt.DeadLetters, b.opt.Quarantine} {
		b.create(t, topic, map[string]*string{"max.message.bytes": &most})
	}
}

func TestServe_LargeMessages_RunOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.resize(t, 4<<20)
		good, bad := msg("good", ""), msg("bad", "")
		good.Body, bad.Body = bytes.Repeat([]byte("x"), 3<<20), bytes.Repeat([]byte("y"), 3<<20)
		b.to(t, 0, good, bad, msg("small", ""))
		got := make(chan int, 3)
		serve(t, consumer(t, guard(t, nil), func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			got <- len(m.Body)
			if m.Key == "bad" {
				return bulky(ctx, x, m)
			}
			return nil
		}, nil), b.source(t, nil))
		b.settled(t)
		if n := len(got); n != 3 {
			t.Errorf("%d handlers ran", n)
		}
		if l := b.Copies(t, driver.DeadLetter); len(l) != 1 || len(l[0].Body) != 3<<20 {
			t.Errorf("%d letters", len(l))
		}
	})
}

// noise is a body that does not compress.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

// A letter is larger than its message. One that would be too large goes without
// its text; one that still is stays, and its message is not acked, without
// haste and in nobody's way.
func TestForward_TooLarge_OmitsTheErrorText(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		const limit = 20_000
		b.resize(t, limit)
		tight, hopeless := msg("tight", ""), msg("hopeless", "")
		tight.Body, hopeless.Body = noise(limit-1300), noise(limit-200)
		var refused, ran atomic.Int64
		serve(t, consumer(t, guard(t, nil), func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if ran.Add(1); m.Key == "next" {
				return nil
			}
			return semel.Final(errors.New(base64.StdEncoding.EncodeToString(noise(750))))
		}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			if e.Kind == consume.EventSettleFailed && errors.Is(e.Err, kerr.MessageTooLarge) {
				refused.Add(1)
				for _, part := range []string{"max.message.bytes", strconv.Itoa(limit), "kafka-configs.sh", b.opt.DeadLetters} {
					if !strings.Contains(e.Err.Error(), part) {
						t.Errorf("the error %q does not name %q", e.Err, part)
					}
				}
			}
		}}), b.source(t, nil))
		b.to(t, 0, tight)
		b.settled(t)
		l := b.Copies(t, driver.DeadLetter)
		if len(l) != 1 {
			t.Fatalf("%d letters", len(l))
		}
		if text, ok := l[0].Header(driver.LetterError); ok {
			t.Errorf("it has the text %.20q", text)
		}
		b.to(t, 0, hopeless)
		until(t, "refused", func() bool { return refused.Load() >= 3 })
		b.to(t, 0, msg("next", ""))
		until(t, "the next run", func() bool { return ran.Load() == 3 })
		if n, at := b.Unsettled(t), b.committed(t, 0); n != 2 || at != 1 {
			t.Errorf("%d messages are unsettled, and offset %d is committed, want 2 and 1", n, at)
		}
		if n := refused.Load(); n > 15 {
			t.Errorf("it was tried %d times", n)
		}
	})
}

// started is the first deliveries of a source that knows the limits of the topics.
func started(t *testing.T, b *broker, n int) []driver.Delivery {
	t.Helper()
	s := b.source(t, nil)
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	return take(t, s, n)
}

// max.message.bytes is about the compressed batch. A message that was below it only
// because its producer compresses goes to the dead letters and to the quarantine, too.
func TestForward_CompressedBeyondTheLimit_IsStored(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		large := msg("large", "o")
		large.Body = bytes.Repeat([]byte("y"), 3<<20)
		b.to(t, 0, large)
		d := started(t, b, 1)[0]
		for _, to := range []driver.Action{driver.DeadLetter, driver.Quarantine} {
			if err := d.Forward(t.Context(), to, d.Message().Headers); err != nil {
				t.Errorf("%v: %v", to, err)
			} else if l := b.Copies(t, to); len(l) != 1 || !bytes.Equal(l[0].Body, large.Body) {
				t.Errorf("%v: %d copies", to, len(l))
			}
		}
	})
}

// The copies that one client sends at the same time share a batch, which must not become
// larger than the topic takes.
func TestForward_ManyAtOnce_FitTogether(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		const n, limit = 8, 20_000
		b.resize(t, limit)
		for i := range n {
			m := msg(strconv.Itoa(i), "")
			m.Body = noise(limit * 2 / 3)
			b.to(t, 0, m)
		}
		var all sync.WaitGroup
		for _, d := range started(t, b, n) {
			all.Go(func() {
				if err := d.Forward(t.Context(), driver.DeadLetter, d.Message().Headers); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// A tombstone has a nil body, which is not an empty one, and its copy is a
// tombstone too.
func TestServe_Tombstone_HasANilBody(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		tombstone, empty := msg("tombstone", "o"), msg("empty", "o")
		tombstone.Body, empty.Body = nil, []byte{}
		b.Publish(t, tombstone, empty)
		isNil := make(chan bool, 2)
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			isNil <- m.Body == nil
			return semel.Final(errors.New("no"))
		}, nil), b.source(t, nil))
		b.settled(t)
		if a, b := <-isNil, <-isNil; !a || b {
			t.Errorf("the tombstone's body is nil: %v, the empty one's: %v", a, b)
		}
		rs := b.records(t, b.opt.DeadLetters)
		if len(rs) != 2 {
			t.Fatalf("%d letters", len(rs))
		}
		for _, r := range rs {
			key := ""
			for _, h := range r.Headers {
				if h.Key == consume.KeyHeader {
					key = string(h.Value)
				}
			}
			if (r.Value == nil) != (key == "tombstone") || string(r.Key) != "o" {
				t.Errorf("the letter of %q has the value %v and the key %q", key, r.Value, r.Key)
			}
		}
	})
}
