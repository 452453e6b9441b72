package kafkapg

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// redrivable makes a ledger whose keys can be reopened over st; nil: the shop's store.
func (p *shop) redrivable(t *testing.T, st store.Store) *keyedLedger {
	t.Helper()
	if st == nil {
		st = p.store
	}
	l := p.keyed(t, 3)
	var err error
	if l.reopen, err = semel.New(st, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// redrive makes item i the letter of its own failure, sent back by an operator.
func redrive(batch []semelkafka.Item, i int, r driver.Result) []semelkafka.Item {
	m := batch[i].Message
	m.Headers = append(driver.Letter(m, driver.Decide(r, driver.Policy{}), "billing"), store.Header{Name: consume.RedriveHeader, Value: "ann: test"})
	return batch
}

const (
	ranNow    = driver.ReasonDone
	ranBefore = driver.ReasonDuplicate
	failed    = driver.ReasonFailed
	waits     = driver.ReasonInProgress
)

func TestKeyed_RedrivenMessage_RunsAgainOnce(t *testing.T) {
	p := newShop(t)
	l := p.redrivable(t, nil)
	p.errs["bad"] = &semel.Failure{Code: "declined"}
	rs := l.Handle(t.Context(), named("bad/o", "x"))
	wantReasons(t, rs, failed, ranNow)
	if rs[0].Fence == 0 {
		t.Error("the failure has no fence")
	}
	runs := len(p.runs)
	if duplicate := l.Handle(t.Context(), named("bad/o")); duplicate[0].Fence != rs[0].Fence {
		t.Errorf("a duplicate names the fence %d, want %d", duplicate[0].Fence, rs[0].Fence)
	}
	if without := p.keyed(t, 3).Handle(t.Context(), redrive(named("bad/o"), 0, rs[0])); without[0].Fence != 0 || len(p.runs) != runs {
		t.Errorf("without Reopen: fence %d, %d runs, want %d", without[0].Fence, len(p.runs), runs)
	}

	redriven := redrive(named("bad/o", "later/o", "other"), 0, rs[0])
	rs = l.Handle(t.Context(), redriven)
	wantReasons(t, rs, failed, waits, ranNow)
	runs = len(p.runs)
	wantReasons(t, l.Handle(t.Context(), redriven), failed, ranNow, ranBefore)
	if got := p.runs[runs:]; len(got) != 1 || got[0] != "later" {
		t.Errorf("redelivered, it ran %q, want later only", got)
	}

	delete(p.errs, "bad")
	redriven = redrive(named("bad/o", "last/o", "bad/o"), 0, rs[0])
	wantReasons(t, l.Handle(t.Context(), redriven), ranNow, ranNow, ranBefore)
	wantReasons(t, l.Handle(t.Context(), redriven), ranBefore, ranBefore, ranBefore)
	p.wantEffects(t, "x", "other", "later", "bad", "last")
}

// A batch is prepared while the one before it runs, so it could read the failure that
// the other one reopens.
func TestKeyed_NextBatchPrepared_SeesTheRedrivenMessage(t *testing.T) {
	p := newShop(t)
	l := p.redrivable(t, nil)
	p.errs["bad"] = &semel.Failure{Code: "declined"}
	r := l.Handle(t.Context(), named("bad"))[0]
	delete(p.errs, "bad")
	first := l.Prepare(t.Context(), redrive(named("bad", "x"), 0, r))
	second := l.Prepare(t.Context(), named("bad", "y"))
	wantReasons(t, first.Handle(t.Context()), ranNow, ranNow)
	wantReasons(t, second.Handle(t.Context()), ranBefore, ranNow)
	p.wantEffects(t, "bad", "x", "y")
}

type downStore struct{ store.Store }

func (downStore) Get(context.Context, store.Key) (store.Found, error) {
	return store.Found{}, errors.New("down")
}

func TestKeyed_ReopenUnavailable_MessageIsNotOvertaken(t *testing.T) {
	p := newShop(t)
	p.errs["bad"] = &semel.Failure{Code: "declined"}
	r := p.keyed(t, 3).Handle(t.Context(), named("bad/o"))[0]
	delete(p.errs, "bad")
	l := p.redrivable(t, downStore{memstore.New(nil)})
	wantReasons(t, l.Handle(t.Context(), redrive(named("bad/o", "later/o", "other"), 0, r)), driver.ReasonUnavailable, waits, ranNow)
	p.wantEffects(t, "other")
}

func TestServeOffsets_Reopen_IsErrorAtStart(t *testing.T) {
	p := newShop(t)
	s, err := semelkafka.New("billing", []string{"orders"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &consume.Options{Reopen: p.redrivable(t, nil).reopen}
	if err := ServeOffsets(t.Context(), s, p.store, p.write, o); err == nil || !strings.Contains(err.Error(), "Reopen") {
		t.Errorf("ServeOffsets returned %v, want an error about Reopen", err)
	}
}
