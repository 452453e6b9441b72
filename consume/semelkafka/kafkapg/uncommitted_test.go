package kafkapg

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store/pgstore"
)

// Partitions come and go while PostgreSQL refuses each COMMIT, so that the messages of those
// that went have no end here.
func TestKeyed_PartitionsGoWhileCommitsFail_CountsAreBounded(t *testing.T) {
	l := newKeyedLedger(&pgstore.Atomic{}, nil, nil, nil)
	for i := range maxUncommitted + 10 {
		b := &keyedBatch{
			keyedLedger: l, messages: []*consume.Message{{Origin: consume.Origin{ID: fmt.Sprint(i)}}},
			handlerErrs: []error{nil}, attempts: []int{1}, fences: []uint64{0},
		}
		b.result(0, pgstore.BatchResult{Err: &semel.Error{Reason: semel.ErrUnavailable}})
	}
	if n := len(l.uncommitted); n != 10 {
		t.Errorf("it counts %d messages, want those after the first %d", n, maxUncommitted)
	}
}
