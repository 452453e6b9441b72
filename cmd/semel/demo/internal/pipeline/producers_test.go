package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
)

func startBroker(t *testing.T) *Broker {
	t.Helper()
	b, err := Start(t.Context(), t.TempDir(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// got is a message as a consumer gets it.
type got struct {
	key  string
	body Placed
	calm bool
}

// settle acks all messages, until ctx ends.
func settle(ctx context.Context, t *testing.T, b *Broker, see func(got)) {
	for ctx.Err() == nil {
		batch, err := b.consumer.Fetch(10, jetstream.FetchContext(ctx))
		if err != nil {
			continue
		}
		for m := range batch.Messages() {
			g := got{key: m.Headers().Get(consume.KeyHeader), calm: m.Headers().Get(CalmHeader) != ""}
			if err := json.Unmarshal(m.Data(), &g.body); err != nil {
				t.Error(err)
			}
			see(g)
			if err := m.Ack(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestProducers_Plan_SentAndSettled(t *testing.T) {
	plan, b := NewPlan(1, 60), startBroker(t)
	p := NewProducers(plan, b)
	ctx, cancel := context.WithCancel(t.Context())
	var consumer sync.WaitGroup
	var all []got
	consumer.Go(func() {
		settle(ctx, t, b, func(g got) {
			all = append(all, g)
			if len(all) == plan.Messages/2 {
				p.Disturbed.Store(true)
			}
		})
	})
	err := p.Run(t.Context(), 4)
	cancel()
	consumer.Wait()
	if err != nil {
		t.Fatal(err)
	}
	sends, first, calm, changed := map[string]int{}, map[string]int64{}, 0, 0
	for i, g := range all {
		sends[g.key]++
		if g.key != g.body.Order || g.key == "" {
			t.Errorf("the key is %q, the order %q", g.key, g.body.Order)
		}
		if amount, ok := first[g.key]; ok && amount != g.body.Amount {
			changed++
		} else if !ok {
			first[g.key] = g.body.Amount
		}
		if g.calm {
			calm++
			if i > plan.Messages/2+manyUnderWay {
				t.Errorf("message %d is measured, though all is disturbed", i)
			}
		}
	}
	if len(all) != plan.Messages || p.Sent.Load() != int64(plan.Messages) || p.Settled.Load() != int64(plan.Messages) {
		t.Errorf("%d messages of %d; sent %d, settled %d", len(all), plan.Messages, p.Sent.Load(), p.Settled.Load())
	}
	if changed != plan.Changes || calm == 0 || calm > 40 || len(sends) != 60 {
		t.Errorf("%d changed amounts of %d, %d calm, %d keys", changed, plan.Changes, calm, len(sends))
	}
}

func TestProducers_Calm_FewMessagesUnderWay(t *testing.T) {
	b := startBroker(t)
	p := NewProducers(NewPlan(1, 50), b)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, 1) }()
	upTo := func(n int64) {
		t.Helper()
		for deadline := time.Now().Add(3 * time.Minute); p.Sent.Load() < n; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d messages were sent, want %d", p.Sent.Load(), n)
			}
		}
	}
	upTo(fewUnderWay) // nobody takes them
	if b, err := b.Backlog(t.Context()); err != nil || b.Unsettled > fewUnderWay {
		t.Errorf("%+v, %v", b, err)
	}
	p.Hold(fewUnderWay)
	p.Disturbed.Store(true)
	if n := p.Sent.Load(); n != fewUnderWay {
		t.Errorf("%d were sent", n)
	}
	p.Hold(fewUnderWay + 2)
	upTo(fewUnderWay + 2)
	p.Hold(int64(p.plan.Messages))
	upTo(fewUnderWay + 3)
	enough := errors.New("enough")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("it ended with %v", err)
	}
}

func TestLetters_Reasons_AreCounted(t *testing.T) {
	b := startBroker(t)
	src, err := semelnats.New(b.js, b.consumer, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := b.js.Publish(t.Context(), subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < 3; {
		ds, err := src.Next(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			why, to := driver.ReasonMismatch, driver.DeadLetter
			if n == 2 {
				why, to = driver.ReasonLate, driver.Quarantine
			}
			hs := driver.Letter(d.Message(), driver.Disposition{Reason: why}, "x")
			if err := errors.Join(d.Forward(t.Context(), to, hs), d.Ack(t.Context())); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	got, err := b.Letters(t.Context())
	if err != nil || len(got) != 2 || got[driver.ReasonMismatch] != 2 || got[driver.ReasonLate] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if left, err := b.Backlog(t.Context()); err != nil || left != (Backlog{0, 3}) {
		t.Errorf("%+v, %v", left, err)
	}
}

func TestBroker_CannotStart_IsAnError(t *testing.T) {
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Start(t.Context(), file, time.Second); err == nil {
		b.Close()
		t.Error("a file was taken for a directory")
	}
}

func TestProducers_ServerEnds_End(t *testing.T) {
	b, err := Start(t.Context(), t.TempDir(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProducers(NewPlan(1, 50), b)
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { ended <- p.Run(ctx, 2) }()
	b.Close()
	if err := <-ended; err == nil || ctx.Err() != nil {
		t.Errorf("it ended with %v", err)
	}
}
