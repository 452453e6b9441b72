package semelwatermill

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestHandler_KeyRunsElsewhere_IsNotAckedAndWaits(t *testing.T) {
	started, end := make(chan struct{}), make(chan struct{})
	once := wrap(t, guardOf(t, nil), func(*message.Message) ([]*message.Message, error) {
		close(started)
		<-end
		return []*message.Message{message.NewMessage("bill", nil)}, nil
	}, nil)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _, _ = once(order(t, "k")) })
	<-started

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	leaving := order(t, "k")
	leaving.SetContext(ended)
	if _, err := once(leaving); err == nil || ForPoisonQueue(err) {
		t.Errorf("a message whose context has ended got %v", err)
	}
	second := make(chan []*message.Message, 1)
	all.Go(func() {
		produced, err := once(order(t, "k"))
		if err != nil {
			t.Error(err)
		}
		second <- produced
	})
	select {
	case produced := <-second:
		t.Error("the second delivery was done while the first ran")
		second <- produced
	case <-time.After(100 * time.Millisecond): // a correct handler always takes this branch
	}
	close(end)
	if produced := <-second; len(produced) != 1 || produced[0].UUID != "bill" {
		t.Errorf("the second delivery publishes %v", produced)
	}
}

func TestHandler_StoreDoesNotAnswer_WaitsAndRuns(t *testing.T) {
	broken := &brokenStore{Store: memstore.New(nil)}
	broken.failures.Store(3)
	guard, err := semel.New(broken, &semel.Options{StoreTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	seen := map[consume.Kind]int{}
	observe := func(_ context.Context, e consume.Event) { seen[e.Kind]++ }
	h := func(*message.Message) ([]*message.Message, error) { runs++; return nil, nil }
	once := wrap(t, guard, h, &consume.Options{Observe: observe})
	if _, err := once(order(t, "k")); err != nil || runs != 1 || broken.failures.Load() >= 0 {
		t.Errorf("ran %d times, %v", runs, err)
	}
	if seen[consume.EventOutage] != 1 || seen[consume.EventResumed] != 1 || seen[consume.EventDecided] < 2 {
		t.Errorf("the events are %v", seen)
	}
}

func TestHandler_BackoffOfGuard_HoldsNextDelivery(t *testing.T) {
	guard := guardOf(t, &semel.Options{Backoff: func(int) time.Duration { return time.Hour }})
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	h := func(*message.Message) ([]*message.Message, error) { runs++; return nil, errors.New("no") }
	once := wrap(t, guard, h, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Disposition.Action == driver.Hold {
			cancel()
		}
	}})
	msg := order(t, "k")
	msg.SetContext(ctx)
	_, first := once(msg)
	_, second := once(msg) // returns because it was held
	if e, ok := errors.AsType[*Error](second); !ok || e.Disposition.Action != driver.Hold || first == nil || runs != 1 {
		t.Errorf("ran %d times, %v, %v", runs, first, second)
	}
}

// brokenStore is a store that does not answer at first.
type brokenStore struct {
	store.Store
	failures atomic.Int32
}

func (b *brokenStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if b.failures.Add(-1) >= 0 {
		return store.Found{}, errors.New("no connection")
	}
	return b.Store.Claim(ctx, p)
}

func TestHandler_EachEnd_FollowsTheTable(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		err     error
		policy  semel.Policy
		options *consume.Options
		action  driver.Action
		poison  bool
		runs    int // of two deliveries
	}{
		"done":               {nil, semel.Retry, nil, driver.Ack, false, 1},
		"plain error":        {no, semel.Retry, nil, driver.Retry, false, 2},
		"plain error, parks": {no, semel.Park, nil, driver.Quarantine, true, 1},
		"no effect, parks":   {semel.NoEffect(no), semel.Park, nil, driver.Retry, false, 2},
		"final":              {semel.Final(no), semel.Retry, nil, driver.DeadLetter, true, 1},
		"final, acked":       {semel.Final(no), semel.Retry, &consume.Options{AckFailures: true}, driver.Ack, false, 1},
		"last attempt":       {no, semel.Retry, &consume.Options{MaxAttempts: 1}, driver.DeadLetter, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			once := wrap(t, guardOf(t, &semel.Options{OnDoubt: c.policy}), func(*message.Message) ([]*message.Message, error) {
				runs++
				return []*message.Message{message.NewMessage("bill", nil)}, c.err
			}, c.options)
			for range 2 {
				produced, err := once(order(t, "k"))
				e, failed := errors.AsType[*Error](err)
				switch {
				case failed != (c.action != driver.Ack), failed && e.Disposition.Action != c.action, ForPoisonQueue(err) != c.poison:
					t.Errorf("got %v", err)
				case failed && c.policy == semel.Retry && !strings.Contains(err.Error(), "no"):
					t.Errorf("the error does not say why: %v", err)
				case (len(produced) == 1) != (c.err == nil):
					t.Errorf("publishes %v", produced)
				}
			}
			if runs != c.runs {
				t.Errorf("ran %d times, want %d", runs, c.runs)
			}
		})
	}
}

func TestHandler_NoKeyOrOtherBody_DoesNotRun(t *testing.T) {
	runs := 0
	h := func(*message.Message) error { runs++; return nil }
	once, err := NoPublishHandler(guardOf(t, nil), byUUID, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	rejecting, err := NoPublishHandler(guardOf(t, nil), consume.Keyed("billing", consume.FromHeader(consume.KeyHeader), consume.Reject()), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := once(order(t, "")); !ForPoisonQueue(err) || !errors.Is(err, consume.ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	if err := rejecting(order(t, "")); ForPoisonQueue(err) || !errors.Is(err, consume.ErrRejected) {
		t.Errorf("rejected: %v", err)
	}
	if err := once(order(t, "k")); err != nil || runs != 1 {
		t.Errorf("ran %d times, %v", runs, err)
	}
	other := order(t, "k")
	other.Payload = []byte("another")
	if err := once(other); !ForPoisonQueue(err) || !errors.Is(err, semel.ErrMismatch) || runs != 1 {
		t.Errorf("another body: ran %d times, %v", runs, err)
	}
	keyed := order(t, "")
	keyed.Metadata.Set("Idempotency-Key", "k")
	if err := rejecting(keyed); err != nil || runs != 2 {
		t.Errorf("key in the metadata: ran %d times, %v", runs, err)
	}
}

func TestHandler_MessagesTooLarge_DuplicateIsForPoisonQueue(t *testing.T) {
	once := wrap(t, guardOf(t, &semel.Options{MaxOutcome: 1000}), func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("bill", make([]byte, 2000))}, nil
	}, nil)
	if produced, err := once(order(t, "k")); err != nil || len(produced) != 1 {
		t.Errorf("the first delivery publishes %v, %v", produced, err)
	}
	if produced, err := once(order(t, "k")); !ForPoisonQueue(err) || !errors.Is(err, semel.ErrNotKept) || produced != nil {
		t.Errorf("the second delivery publishes %v, %v", produced, err)
	}
}

func TestHandler_HandlerAcksTooEarly_HasNoEffect(t *testing.T) {
	once := wrap(t, guardOf(t, nil), func(msg *message.Message) ([]*message.Message, error) {
		msg.Ack()
		return nil, errors.New("no")
	}, nil)
	msg := order(t, "k")
	if _, err := once(msg); err == nil || !msg.Nack() {
		t.Errorf("the message is acked, although its handler failed: %v", err)
	}
}

func TestHandler_Context_HasRunAndMessage(t *testing.T) {
	once := wrap(t, guardOf(t, nil), func(msg *message.Message) ([]*message.Message, error) {
		x, ok := semel.FromContext(msg.Context())
		m, found := consume.FromContext(msg.Context())
		if !ok || !found || x.Operation() != "billing" || m.Origin.ID != "k" {
			t.Errorf("found %v and %v", x, m)
		}
		return []*message.Message{msg}, nil
	}, nil)
	msg := order(t, "k")
	produced, err := once(msg)
	if err != nil || len(produced) != 1 || produced[0].Context().Err() != nil || msg.Context() != t.Context() {
		t.Errorf("got %v, %v", produced, err)
	}
}

func TestHandler_Arguments_ErrorNamesEachFault(t *testing.T) {
	_, err := Handler(nil, nil, nil, &consume.Options{Retention: -1})
	_, noPublish := NoPublishHandler(nil, nil, nil, nil)
	for _, want := range []string{"semelwatermill: ", "run: is nil", "call: is nil", "handler: is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) || noPublish == nil || !strings.Contains(noPublish.Error(), want) {
			t.Errorf("the errors do not have %q: %v; %v", want, err, noPublish)
		}
	}
}

// Two spellings of one name in the metadata give the same key in each delivery.
func TestMessageOf_NameInTwoSpellings_KeyIsTheSame(t *testing.T) {
	keys := map[string]int{}
	for range 200 {
		msg := order(t, "k")
		msg.Metadata = message.Metadata{"ce_specversion": "1.0", "ce_source": "shop", "ce_id": "1", "CE_ID": "2"}
		key, err := consume.CloudEvent()(messageOf(msg))
		if err != nil {
			t.Fatal(err)
		}
		keys[key]++
	}
	if len(keys) != 1 {
		t.Errorf("one message has the keys %v", keys)
	}
}
