package dynamostore

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

// clocks are the standing clocks of the stores that a test opens.
var clocks sync.Map // *Store: *standingClock

// openStanding opens a store with a clock that stands still until the suite moves
// it.
func openStanding(t testing.TB) store.Store { return openWith(t, &Options{}) }

func openWith(t testing.TB, o *Options) store.Store {
	c := newStandingClock()
	o.IndexShards, o.SweepExpired, o.now, o.noSkew = 2, true, c.read, true
	s := openNew(t, o)
	clocks.Store(s, c)
	return s
}

func reopen(t testing.TB, st store.Store) store.Store {
	s := st.(*Store)
	return openAgain(t, s, &s.opt)
}

// The suite that every store passes, with a clock that the suite moves.
func TestConformance(t *testing.T) {
	storetest.Run(t, harness(openStanding))
}

// The suite with each outcome, however small, in S3.
func TestCampaign_EachOutcomeInObject_Conforms(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite runs without objects in the short form")
	}
	h := harness(func(t testing.TB) store.Store {
		return openWith(t, &Options{Objects: &deletingBucket{bucket: newBucket(t)}, inline: 1})
	})
	h.HideOutcomes = func(t testing.TB, st store.Store) {
		b := st.(*Store).opt.Objects.(*deletingBucket)
		if len(b.made()) == 0 {
			t.Error("no outcome was an object")
		}
		b.fail(errors.New("503 Slow Down"))
	}
	storetest.Run(t, h)
}

func harness(open func(testing.TB) store.Store) storetest.Harness {
	return storetest.Harness{
		Open: open,
		Advance: func(t testing.TB, st store.Store, d time.Duration) {
			c, _ := clocks.Load(st)
			c.(*standingClock).advance(d)
		},
		Reopen:    reopen,
		Begin:     begin,
		Histories: histories(),
	}
}

// testTx is a transaction with effects: items of the application in the same table.
type testTx struct {
	*Tx
}

func begin(_ testing.TB, st store.Store) storetest.Tx { return testTx{st.(*Store).NewTx()} }

const effectPrefix = "effect#"

func (t testTx) Effect(_ context.Context, name string) error {
	s := t.store
	o := newOwner()
	it := item{s.opt.PartitionKey: textOf(effectPrefix + hex.EncodeToString(o[:])), "name": textOf(name)}
	return t.Add(types.TransactWriteItem{Put: &types.Put{TableName: &s.table, Item: it}})
}

func (t testTx) Effects(ctx context.Context) (names []string, err error) {
	s, e := t.store, newExpression()
	filter := "begins_with(" + e.name(s.opt.PartitionKey) + ", " + e.value(textOf(effectPrefix)) + ")"
	consistent := true
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: &consistent, FilterExpression: &filter,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if err != nil {
		return nil, err
	}
	for _, it := range out.Items {
		d := decoder{it: it}
		names = append(names, d.text("name"))
	}
	return names, nil
}

// Rollback drops the transaction.
func (t testTx) Rollback(context.Context) error {
	t.ended = true
	return nil
}
