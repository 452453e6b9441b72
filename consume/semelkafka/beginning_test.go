package semelkafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slowLedger is a ledger whose Own ends some time after its context.
type slowLedger struct {
	scripted
	goOn chan struct{}
}

func (l *slowLedger) Own(ctx context.Context, _ GroupPartition, _ int64) (int64, LastMessage, error) {
	<-ctx.Done()
	<-l.goOn
	return 0, LastMessage{}, ctx.Err()
}

// A partition is not handed over while the ledger is still asked for it, because its next
// owner would lose it.
func TestRevoked_LedgerIsAsked_WaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apart(t, nil)
		l := &slowLedger{goOn: make(chan struct{})}
		p := newPartition(partitionID{"t", 0})
		s.parts = map[partitionID]*partition{p.partitionID: p}
		s.ledger = l
		s.beginAll(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(5)}})
		synctest.Wait()
		revoked := make(chan struct{})
		go func() {
			defer close(revoked)
			s.revoked(t.Context(), nil, map[string][]int32{"t": {0}})
		}()
		synctest.Wait()
		select {
		case <-revoked:
			t.Error("the partition is handed over, and the ledger is still asked for it")
		default:
		}
		close(l.goOn)
		<-revoked
		synctest.Wait()
	})
}

// The wait for handlers and the wait for the ledger begin together, so that the commit after
// them is not late for the rebalance.
func TestRevoked_HandlerAndLedgerAreSlow_TakesHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apart(t, nil, 1)
		handed(t, s, 1)
		p, l := s.parts[partitionID{"t", 0}], &slowLedger{goOn: make(chan struct{})}
		s.ledger = l
		s.beginAll(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(5)}})
		synctest.Wait()
		if p.beginning == nil {
			t.Fatal("the ledger is not asked")
		}
		began := time.Now()
		s.revoked(t.Context(), nil, map[string][]int32{"t": {0}})
		if took := time.Since(began); took != s.opt.HandOver {
			t.Errorf("the partition was handed over after %v, want %v", took, s.opt.HandOver)
		}
		close(l.goOn)
		synctest.Wait()
	})
}
