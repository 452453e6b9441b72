package dynamostore

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// meter counts the requests of a client and the units that they consume.
type meter struct {
	mu       sync.Mutex
	requests map[string]int
	eventual int     // reads that are not consistent
	table    float64 // units of the table
	index    float64 // units of the index
}

func (m *meter) add(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				name := ""
				switch p := in.Parameters.(type) {
				case *dynamodb.PutItemInput:
					name, p.ReturnConsumedCapacity = "PutItem", types.ReturnConsumedCapacityIndexes
				case *dynamodb.UpdateItemInput:
					name, p.ReturnConsumedCapacity = "UpdateItem", types.ReturnConsumedCapacityIndexes
				case *dynamodb.GetItemInput:
					name, p.ReturnConsumedCapacity = "GetItem", types.ReturnConsumedCapacityIndexes
					m.sawRead(p.ConsistentRead)
				case *dynamodb.BatchGetItemInput:
					name = "BatchGetItem"
					for _, r := range p.RequestItems {
						m.sawRead(r.ConsistentRead)
					}
				case *dynamodb.QueryInput:
					name = "Query"
				case *dynamodb.ScanInput:
					name = "Scan"
				default:
					name = "other"
				}
				out, metadata, err := next.HandleInitialize(ctx, in)
				m.mu.Lock()
				defer m.mu.Unlock()
				m.requests[name]++
				switch r := out.Result.(type) {
				case *dynamodb.PutItemOutput:
					m.consumed(r.ConsumedCapacity)
				case *dynamodb.UpdateItemOutput:
					m.consumed(r.ConsumedCapacity)
				case *dynamodb.GetItemOutput:
					m.consumed(r.ConsumedCapacity)
				}
				return out, metadata, err
			}), middleware.Before)
	})
}

func (m *meter) sawRead(consistent *bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if consistent == nil || !*consistent {
		m.eventual++
	}
}

func (m *meter) consumed(c *types.ConsumedCapacity) {
	if c == nil {
		return
	}
	if c.Table != nil {
		m.table += aws.ToFloat64(c.Table.CapacityUnits)
	}
	for _, i := range c.GlobalSecondaryIndexes {
		m.index += aws.ToFloat64(i.CapacityUnits)
	}
}

// take returns what was counted since the last take.
func (m *meter) take() (requests map[string]int, table, index float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { m.requests, m.table, m.index = map[string]int{}, 0, 0 }()
	return m.requests, m.table, m.index
}

// A new call is two writes and a replay is one request. The numbers are in the
// package's documentation.
func TestUnits_EachOperation_AsDocumented(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	m := &meter{requests: map[string]int{}}
	s := openOn(t, dynamotest.Client(dynamotest.URL(t), m.add), direct.table, &direct.opt)
	g, err := semel.New(s, &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want map[string]int, table float64) {
		t.Helper()
		requests, units, index := m.take()
		if !maps.Equal(requests, want) || units != table {
			t.Errorf("%s: requests %v and %v units of the table, want %v and %v", what, requests, units, want, table)
		}
		t.Logf("%s: requests %v, %v units of the table, %v of the index", what, requests, units, index)
	}
	call := semel.Call{Operation: "op", Tenant: "t", Key: "k", Payload: semel.NoPayload()}
	run := func() {
		t.Helper()
		_, err := g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Body: []byte("done")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.checkClock(t.Context(), store.Processing); err != nil { // once in a process
		t.Fatal(err)
	}
	check("a look at the server's clock", map[string]int{"GetItem": 1}, 1)
	run()
	check("a new call", map[string]int{"PutItem": 1, "UpdateItem": 1}, 2)
	run()
	check("a replay", map[string]int{"PutItem": 1}, 0) // DynamoDB charges a refused write and does not report it
	r := claim(t, s, "one")
	m.take()
	if _, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); err != nil {
		t.Fatal(err)
	}
	check("a renewal", map[string]int{"UpdateItem": 1}, 1)
	if err := s.RecordStep(t.Context(), r.Lease(), store.Step{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	check("a step", map[string]int{"UpdateItem": 1}, 1)
	if _, err := s.changed(t.Context(), &store.Seen{Key: r.Key}); err != nil {
		t.Fatal(err)
	}
	check("a look of a waiting call", map[string]int{"GetItem": 1}, 1)
	if err := s.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour,
		Outcome: store.Outcome{Body: []byte(strings.Repeat("x", 10_000))}}); err != nil { // compresses to less than a unit
		t.Fatal(err)
	}
	check("a settlement with an outcome of 10 KB that compresses", map[string]int{"UpdateItem": 1}, 1)
}

// Each read of a record is strongly consistent. The emulator cannot show a read that
// is not.
func TestReads_EachMethod_AreConsistent(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	m := &meter{requests: map[string]int{}}
	s := openOn(t, dynamotest.Client(dynamotest.URL(t), m.add), direct.table, &direct.opt)
	r := claim(t, s, "k")
	for method, err := range map[string]error{
		"Get":   second(s.Get(t.Context(), r.Key)),
		"Steps": second(s.Steps(t.Context(), r.Lease())),
		"wait":  second(s.changed(t.Context(), &store.Seen{Key: r.Key})),
		"Tx":    second(s.NewTx().Claim(t.Context(), proposal("k"))),
	} {
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, err := range s.List(t.Context(), store.Filter{States: []store.State{store.Processing}}) {
		if err != nil {
			t.Error(err)
		}
	}
	if m.eventual > 0 || m.requests["GetItem"] < 4 || m.requests["BatchGetItem"] < 1 {
		t.Errorf("%d reads are not consistent; requests %v", m.eventual, m.requests)
	}
}
