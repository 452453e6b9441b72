package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// Outbox is the store that is tested.
type Outbox interface {
	outbox.Store
	outbox.Inspector
}

// Tx is a transaction that writes messages.
type Tx interface {
	Put(ctx context.Context, messages ...outbox.Message) error
	Commit() error
	Rollback() error
}

// Harness opens stores for the suite.
type Harness struct {
	// Open returns an empty outbox, which is shared with no other test and is cleaned up
	// by t, and a function that begins transactions.
	Open func(t testing.TB) (box Outbox, begin func(t testing.TB) Tx)
	// OneWriter says that the database has one write transaction at a time, so that
	// none can commit late.
	OneWriter bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, rule := range []struct {
		name string
		test func(b *bed)
		late bool // needs two transactions at the same time
	}{
		{"Take_Committed_ReturnsWhatWasWritten", (*bed).committed, false},
		{"Put_RolledBack_IsNotTaken", (*bed).rolledBack, false},
		{"Put_Invalid_Refused", (*bed).invalid, false},
		{"Take_CommitsLateWithLowerPosition_IsNotSkipped", (*bed).lateCommit, true},
		{"Put_KeyInOtherTransaction_Waits", (*bed).waitsForKey, true},
		{"Take_KeyOfSeveralMessages_InOrderFromFirst", (*bed).order, false},
		{"Take_Busy_IsLeftOut", (*bed).busy, false},
		{"Take_TopicPaused_OtherTopicsGoOn", (*bed).pausedTopic, false},
		{"Lease_TwoPublishers_ShareLanes", (*bed).share, false},
		{"Lease_IsOver_TakenOverWithHigherFence", (*bed).takeOver, false},
		{"Settle_LaneLost_ChangesNothing", (*bed).fenced, false},
		{"Settle_Delivered_DeletesOrKeeps", (*bed).delivered, false},
		{"Settle_RepeatedLate_DeletesNoOtherMessage", (*bed).lateSettle, false},
		{"Settle_Failed_KeyWaitsAndOthersGoOn", (*bed).failed, false},
		{"Settle_FailedThenDelivered_RestGoesOnInOrder", (*bed).goesOn, false},
		{"Settle_FailedAgainAfterLostReply_CountsOnce", (*bed).failedAgain, false},
		{"Settle_Refused_StopsKeyUntilRetry", (*bed).refused, false},
		{"Settle_LateDelivery_KeyStoppedByOtherMessageStays", (*bed).lateDelivery, false},
		{"Drop_FirstOfStoppedKey_LaterOnesGoOn", (*bed).drop, false},
		{"Drop_EachState_AllowedOrRefused", (*bed).dropStates, false},
		{"ListCall_EachState_MessagesOfCallOnly", (*bed).call, false},
		{"Take_ManyBehindFailed_OtherKeysGoOn", (*bed).manyBehind, false},
		{"Take_ManyFailedAreDue_OtherKeysGoOn", (*bed).manyDue, false},
		{"RandomHistories_AgreeWithModel", (*bed).histories, false},
		{"Woken_AfterCommit_HasValue", (*bed).woken, false},
	} {
		t.Run(rule.name, func(t *testing.T) {
			if rule.late && h.OneWriter {
				t.Log("the database has one write transaction at a time: nothing can commit late")
				return
			}
			box, begin := h.Open(t)
			rule.test(&bed{t: t, ctx: t.Context(), Outbox: box, begin: begin})
		})
	}
}

// bed is one test.
type bed struct {
	Outbox
	t     *testing.T
	ctx   context.Context //nolint:containedctx // of the test
	begin func(t testing.TB) Tx
	lanes []outbox.Lane
	// paused are topics of which take returns no messages.
	paused []string
}

const long = time.Minute // a lease that does not end during the test

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// message is a message with a key and a body that are easy to recognize.
func message(key string, n int) outbox.Message {
	return outbox.Message{Topic: "orders", OrderKey: key, ID: fmt.Sprintf("%s-%d", key, n), Body: fmt.Append(nil, n)}
}

// put writes messages in a transaction.
func (b *bed) put(ms ...outbox.Message) {
	b.t.Helper()
	tx := b.begin(b.t)
	b.must(tx.Put(b.ctx, ms...))
	b.must(tx.Commit())
}

// putKey writes messages n to m-1 of a key.
func (b *bed) putKey(key string, n, m int) {
	b.t.Helper()
	var ms []outbox.Message
	for ; n < m; n++ {
		ms = append(ms, message(key, n))
	}
	b.put(ms...)
}

// lease takes all lanes.
func (b *bed) lease() {
	b.t.Helper()
	lanes, _, err := b.Lease(b.ctx, "one", long)
	b.must(err)
	if b.lanes = lanes; len(lanes) != outbox.Lanes {
		b.t.Fatalf("leased %d lanes, want %d", len(lanes), outbox.Lanes)
	}
}

// take takes up to limit messages of all lanes.
func (b *bed) take(limit int, busy ...int64) []outbox.Taken {
	b.t.Helper()
	if b.lanes == nil {
		b.lease()
	}
	taken, err := b.Take(b.ctx, b.lanes, busy, b.paused, limit)
	b.must(err)
	return taken
}

// takeOne is the only message that can be taken.
func (b *bed) takeOne(id string) *outbox.Taken {
	b.t.Helper()
	taken := b.take(100)
	b.wantIDs(taken, id)
	return &taken[0]
}

func ids(taken []outbox.Taken) (ids []string) {
	for i := range taken {
		ids = append(ids, taken[i].ID)
	}
	return ids
}

// wantIDs compares the messages, and their order.
func (b *bed) wantIDs(taken []outbox.Taken, want ...string) {
	b.t.Helper()
	if got := ids(taken); !slices.Equal(got, want) {
		b.t.Fatalf("taken %q, want %q", got, want)
	}
}

// takeAll takes until nothing is left, with the messages that it has as delivered.
func (b *bed) takeAll() (all []string) {
	b.t.Helper()
	for {
		taken := b.take(100)
		if len(taken) == 0 {
			return all
		}
		all = append(all, ids(taken)...)
		results := make([]outbox.Result, len(taken))
		for i := range taken {
			results[i] = outbox.Result{Taken: &taken[i], Kind: outbox.Delivered}
		}
		b.must(b.Settle(b.ctx, results))
	}
}

func (b *bed) settle(t *outbox.Taken, kind outbox.ResultKind, delay time.Duration) {
	b.t.Helper()
	b.must(b.Settle(b.ctx, []outbox.Result{{Taken: t, Kind: kind, Delay: delay, Error: "it failed"}}))
}

func (b *bed) stats() outbox.Stats {
	b.t.Helper()
	s, err := b.Stats(b.ctx)
	b.must(err)
	s.OldestAge = 0
	return s
}

func (b *bed) wantStats(want outbox.Stats) {
	b.t.Helper()
	if got := b.stats(); got != want {
		b.t.Errorf("stats %+v, want %+v", got, want)
	}
}

// until repeats a condition until it holds.
func (b *bed) until(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			b.t.Fatalf("%s: not within 20s", what)
		}
	}
}

func (b *bed) wantError(got, want error) {
	b.t.Helper()
	if !errors.Is(got, want) {
		b.t.Errorf("error %v, want %v", got, want)
	}
}

// whole is a message with each field.
var whole = outbox.Message{
	Topic: "orders/new", OrderKey: "ann ä 'x", ID: "id \"1\"", Headers: []store.Header{{Name: "a", Value: "ä,1"}, {Name: "a", Value: ""}},
	Body: []byte{0, 255, '\'', '\n', 'x'},
}
