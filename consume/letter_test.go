package consume_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// letterOf is the copy that a message leaves when its handler fails so.
func letterOf(t *testing.T, m *consume.Message, err error) (letter consume.Message) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSource(m)
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error { return err }, consume.Options{MaxAttempts: 1}), s)
		synctest.Wait()
		if len(s.letters) != 1 {
			t.Fatalf("%d letters", len(s.letters))
		}
		letter = s.letters[0]
		r.end()
	})
	return letter
}

func TestLetter_HeadersTellOriginAndReason(t *testing.T) {
	published := time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC) // when a bubble's clock starts
	m := keyed("k")
	m.Origin = consume.Origin{Topic: "orders", Partition: 3, Offset: 42, ID: "orders/3/42"}
	m.Published, m.Deliveries = published, 2
	m.Headers = append(m.Headers, headers("trace", "t", "Semel-Letter-Reason", "an old one", "semel-caused-by", "c")...)
	before := slices.Clone(m.Headers)
	l := letterOf(t, m, &semel.Failure{Code: "declined", Message: "no"})
	var got []string
	for _, h := range l.Headers {
		got = append(got, h.Name+"="+h.Value)
	}
	id, _ := l.Header(driver.LetterID)
	want := []string{
		"idempotency-key=k", "trace=t", "semel-caused-by=c",
		"semel-letter-reason=failed", "semel-letter-code=declined", "semel-letter-error=no", "semel-letter-attempts=1", "semel-letter-deliveries=2",
		"semel-letter-group=test", "semel-letter-fence=946684800000000", "semel-letter-key=k", "semel-letter-topic=orders", "semel-letter-address=orders", "semel-letter-partition=3", "semel-letter-offset=42",
		"semel-letter-origin-id=orders/3/42", "semel-letter-published=2000-01-01T00:00:00.000001Z", "semel-letter-id=" + id,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || id == "" {
		t.Errorf("the letter has\n%v\nwant\n%v", got, want)
	}
	if !slices.Equal(m.Headers, before) {
		t.Errorf("the message was changed: %v", m.Headers)
	}
}

func TestLetter_OddErrorText_BecomesOneValidLine(t *testing.T) {
	l := letterOf(t, keyed("k"), fmt.Errorf("a\nb\r\x00c\xff %s", strings.Repeat("é", 5000)))
	text, _ := l.Header(driver.LetterError)
	if len(text) > 1000 || strings.ContainsAny(text, "\n\r\x00") || !utf8.ValidString(text) || !strings.Contains(text, "a b  c") {
		t.Errorf("the error is %q", text)
	}
}

// An ack may be lost after the letter was sent, and then it is sent again.
func TestLetter_SentAgain_HasTheSameID(t *testing.T) {
	id := func(change func(m *consume.Message)) string {
		m := keyed("k")
		m.Origin = consume.Origin{Topic: "orders", ID: "orders/3/42"}
		change(m)
		l := letterOf(t, m, errPlain)
		id, _ := l.Header(driver.LetterID)
		return id
	}
	same := id(func(*consume.Message) {})
	if again := id(func(m *consume.Message) { m.Deliveries = 7 }); again != same {
		t.Error("a redelivery has another id")
	}
	seen := map[string]string{same: "the first"}
	for name, change := range map[string]func(m *consume.Message){
		"offset": func(m *consume.Message) { m.Origin.ID = "orders/3/43" },
		"topic":  func(m *consume.Message) { m.Origin.Topic = "bills" },
		"no id":  func(m *consume.Message) { m.Origin.ID = "" },
		"no id, another body": func(m *consume.Message) {
			m.Origin.ID = ""
			m.Body = []byte("c")
		},
	} {
		got := id(change)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[got] = name
	}
}

// RabbitMQ has no ID of a message.
func TestLetter_NoOriginID_DiffersByContent(t *testing.T) {
	id := func(change func(m *consume.Message)) string {
		m := &consume.Message{
			Key: "a", Body: []byte("body"), Origin: consume.Origin{Topic: "orders", Address: "shop/created"},
			Headers: headers("amqp-type", "created", "color", "red", "x-delivery-count", "1"),
		}
		change(m)
		hs := driver.Letter(m, driver.Disposition{Action: driver.DeadLetter}, "group")
		v, _ := (&consume.Message{Headers: hs}).Header(driver.LetterID)
		return v
	}
	same := id(func(*consume.Message) {})
	for name, change := range map[string]func(m *consume.Message){
		"key":     func(m *consume.Message) { m.Key = "b" },
		"body":    func(m *consume.Message) { m.Body = []byte("another") },
		"address": func(m *consume.Message) { m.Origin.Address = "shop/canceled" },
		"header":  func(m *consume.Message) { m.Headers[0].Value = "canceled" },
		"headers": func(m *consume.Message) { m.Headers = m.Headers[:1] },
	} {
		if id(change) == same {
			t.Errorf("a message with other %s has the same id", name)
		}
	}
	if id(func(m *consume.Message) { m.Headers[2].Value = "2"; slices.Reverse(m.Headers) }) != same {
		t.Error("a redelivery has another id")
	}
}

// The dead letters of an order key keep its order while their copies are refused.
func TestLetter_IsRefused_NextLetterOfTheKeyWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses int
		want    []string
	}{
		{"once", 1, []string{"dead-letter a", "ack a", "dead-letter b", "ack b"}},
		{"ten times", 10, []string{"nak a 5m0s", "dead-letter b", "ack b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(ordered("a", "o"), ordered("b", "o"))
				s.forward = func() error {
					if c.refuses--; c.refuses >= 0 {
						return errPlain
					}
					return nil
				}
				r := serve(t, newConsumer(t, newGuard(t, nil, nil), final, consume.Options{}), s)
				pass(time.Minute)
				if got := s.heard(); !slices.Equal(got, c.want) {
					t.Errorf("told %v, want %v", got, c.want)
				}
				r.end()
			})
		})
	}
}

// With a broker that cannot redeliver one message, the order key goes on after ten refusals, too.
func TestLetter_IsHeldForEver_KeyGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("a", "o"), ordered("b", "o"))
		s.info.HoldsOnly = true
		s.forward = func() error { return errPlain }
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if m.Key == "a" {
				return final(ctx, x, m)
			}
			return nil
		}, consume.Options{}), s)
		pass(5 * time.Minute)
		if got := s.heard(); !slices.Equal(got, []string{"ack b"}) {
			t.Errorf("told %v, want the ack of b", got)
		}
		r.end()
	})
}

// hangingLetters is a source whose letters are refused at first. Later they give no answer,
// and neither do retries.
type hangingLetters struct {
	*source
	hang atomic.Bool
}

type hangingLetter struct {
	*delivery
	source *hangingLetters
}

func (h *hangingLetters) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := h.source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &hangingLetter{d.(*delivery), h}
	}
	return ds, err
}

func (d *hangingLetter) Forward(ctx context.Context, _ driver.Action, _ []store.Header) error {
	if !d.source.hang.Load() {
		return errPlain
	}
	<-ctx.Done()
	return ctx.Err()
}

func (d *hangingLetter) Nak(ctx context.Context, delay time.Duration) error {
	if !d.source.hang.Load() || delay == 0 {
		return d.delivery.Nak(ctx, delay)
	}
	<-ctx.Done()
	return ctx.Err()
}

// A retry that the broker does not confirm delays its own message only.
func TestServe_NaksHang_OtherMessagesAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hangingLetters{source: newSource()}
		s.hang.Store(true)
		for i := range 9 {
			s.in <- keyed(fmt.Sprint("bad", i))
		}
		h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if strings.HasPrefix(m.Key, "bad") {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Concurrency: 2, InFlight: 4}), s)
		pass(6 * time.Second) // each Nak hangs for 10 s
		for _, key := range []string{"healthy", "next"} {
			s.in <- keyed(key)
			pass(time.Millisecond)
			if s.count("ack "+key) != 1 {
				t.Errorf("the message %q waits for 9 retries that hang", key)
			}
		}
		r.end()
		pass(time.Hour)
	})
}

// A dead-letter topic that gives no answer delays the messages that go there, and no other.
func TestLetter_Hangs_OtherMessagesAreServed(t *testing.T) {
	for name, refused := range map[string]time.Duration{"from the first try on": 0, "after it was refused": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &hangingLetters{source: newSource()}
				s.info.HoldsOnly = true // no message is given back
				s.hang.Store(refused == 0)
				for i := range 9 {
					s.in <- keyed(fmt.Sprint("bad", i))
				}
				h := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
					if strings.HasPrefix(m.Key, "bad") {
						return final(ctx, x, m)
					}
					return nil
				}
				r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Concurrency: 2, InFlight: 4}), s)
				pass(refused) // each letter waits 5 s between two tries by then
				s.hang.Store(true)
				pass(6 * time.Second)                             // each try hangs for 10 s
				for _, key := range []string{"healthy", "next"} { // a Next for the first one waits already
					s.in <- keyed(key)
					pass(time.Millisecond)
					if s.count("ack "+key) != 1 {
						t.Errorf("the message %q, which needs no letter, waits for 9 letters that hang", key)
					}
				}
				r.end()
				pass(time.Hour)
			})
		})
	}
}
