package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func atomicOf(t testing.TB, s *Store) *Atomic {
	t.Helper()
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// count is a write that counts, in an item of the application: carried out twice, it
// would show.
func (s *Store) count(name string) types.TransactWriteItem {
	e := newExpression()
	n := e.name("n")
	change := fmt.Sprintf("SET %s = if_not_exists(%s, %s) + %s", n, n, e.value(numberOf(0)), e.value(numberOf(1)))
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: item{s.opt.PartitionKey: textOf("count#" + s.opt.Prefix + name)}, UpdateExpression: &change,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}}
}

// counted is how often count was carried out.
func (s *Store) counted(t testing.TB, name string) int64 {
	t.Helper()
	out, err := s.client.GetItem(t.Context(), getInput(s, "count#"+s.opt.Prefix+name))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Item) == 0 {
		return 0
	}
	d := decoder{it: out.Item}
	return d.number("n")
}

func testCall(key string) semel.Call {
	return semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.NoPayload()}
}

func TestAtomic_CallAndDuplicate_OneEffectAndReplay(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	for range 3 {
		got, err := Do(t.Context(), a, testCall("k"), func(_ context.Context, _ *semel.Execution, tx *Tx) (string, error) {
			return "done", tx.Add(s.count("k"))
		})
		if err != nil || got != "done" {
			t.Fatalf("Do: %q, error %v", got, err)
		}
	}
	if n := s.counted(t, "k"); n != 1 {
		t.Errorf("the effect happened %d times, want 1", n)
	}
}

func TestAtomic_HandlerFails_WritesNothing(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	plain := errors.New("plain")
	for name, c := range map[string]struct {
		err      error
		recorded bool
	}{"plain": {plain, false}, "final": {semel.Final(plain), true}} {
		for range 2 {
			err := Once(t.Context(), a, testCall(name), func(_ context.Context, _ *semel.Execution, tx *Tx) error {
				return errors.Join(tx.Add(s.count(name)), c.err)
			})
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if n := s.counted(t, name); n != 0 {
			t.Errorf("%s: the effect happened %d times, want 0", name, n)
		}
		_, err := s.Get(t.Context(), store.Key{Operation: "op", Tenant: "t", Value: name})
		if recorded := err == nil; recorded != c.recorded {
			t.Errorf("%s: recorded %v, want %v", name, recorded, c.recorded)
		}
	}
}

func TestAtomic_WriteRefused_WritesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	e := newExpression()
	condition := "attribute_exists(" + e.name("n") + ")"
	refused := types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.table, Key: item{s.opt.PartitionKey: textOf("count#absent")}, ConditionExpression: &condition, ExpressionAttributeNames: e.names,
	}}
	ran := 0
	err := Once(t.Context(), a, testCall("k"), func(_ context.Context, _ *semel.Execution, tx *Tx) error {
		ran++
		return tx.Add(s.count("k"), refused)
	})
	if _, ok := errors.AsType[*types.TransactionCanceledException](err); !errors.Is(err, ErrWriteRefused) || !ok || ran != 1 {
		t.Errorf("a refused write: error %v after %d runs, want ErrWriteRefused after one", err, ran)
	}
	if errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("%v: the handler's write is the cause, and not the store", err)
	}
	if _, err := s.Get(t.Context(), store.Key{Operation: "op", Tenant: "t", Value: "k"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused transaction recorded the call: %v", err)
	}
	if n := s.counted(t, "k"); n != 0 {
		t.Errorf("the other write happened %d times", n)
	}
}

// A step that is a transaction: the record of a leased call gets the step, and the
// application its writes, together, while the lease is renewed.
func TestAtomic_StepOfLeasedCall_RecordedWithItsWrites(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	g, err := semel.New(s, &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	run := func() (string, error) {
		return semel.Do(t.Context(), g, testCall("k"), func(ctx context.Context, x *semel.Execution) (string, error) {
			attempts++
			got, err := Do(ctx, a, chargeStep(x), func(_ context.Context, _ *semel.Execution, tx *Tx) (string, error) {
				return "charged", tx.Add(s.count("charge"))
			})
			if attempts == 1 {
				return "", errors.Join(errors.New("a crash after the step"), err)
			}
			return got, err
		})
	}
	if _, err := run(); err == nil {
		t.Fatal("the first attempt is no error")
	}
	got, err := run()
	if err != nil || got != "charged" || attempts != 2 {
		t.Errorf("the second attempt: %q, error %v, %d attempts", got, err, attempts)
	}
	if n := s.counted(t, "charge"); n != 1 {
		t.Errorf("the step's effect happened %d times, want 1", n)
	}
}

func TestAtomic_NameOfStepUsedTwice_IsInvalid(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	a := atomicOf(t, s)
	g, err := semel.New(s, &semel.Options{StoreTimeout: time.Minute, SettleTimeout: time.Minute, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	err = semel.Once(t.Context(), g, testCall("k"), func(ctx context.Context, x *semel.Execution) error {
		for _, want := range []error{nil, semel.ErrInvalid} {
			err := Once(ctx, a, chargeStep(x), func(_ context.Context, _ *semel.Execution, tx *Tx) error { return tx.Add(s.count("charge")) })
			if !errors.Is(err, want) {
				t.Errorf("the step: %v, want %v", err, want)
			}
		}
		return nil
	})
	if n := s.counted(t, "charge"); err != nil || n != 1 {
		t.Errorf("the step's effect happened %d times, want 1; error %v", n, err)
	}
}

// Two processes run calls and their duplicates through a network that loses requests
// and replies, delays and doubles: each effect happens once.
func TestAtomic_RequestsLostLateAndDoubled_OneEffect(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	network := newBadNetwork(t, 150)
	all := [2]*Atomic{}
	for i := range all {
		all[i] = atomicOf(t, openOn(t, network.through(t), direct.table, &direct.opt))
	}
	n := 32
	if long() {
		n = 3000
	}
	var next, doubt, ran atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1); (int(i) <= n || int(i) <= 20*n && !network.allSeen()) && !t.Failed(); i = next.Add(1) {
				key := fmt.Sprint("key ", i)
				var callers sync.WaitGroup
				for c := range 3 {
					callers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
						defer cancel()
						for {
							err := Once(ctx, all[c%2], testCall(key), func(_ context.Context, _ *semel.Execution, tx *Tx) error {
								ran.Add(1)
								return tx.Add(direct.count(key))
							})
							if err == nil {
								return
							}
							if errors.Is(err, semel.ErrInDoubt) {
								doubt.Add(1)
							}
							if !sleep(ctx, 10*time.Millisecond) {
								t.Errorf("%s has no end: %v", key, err)
								return
							}
						}
					})
				}
				callers.Wait()
			}
		})
	}
	workers.Wait()
	network.late.Wait()
	network.sawAll(t)
	keys, double := min(int(next.Load()-8), 20*n), int64(0)
	for i := range keys {
		if got := direct.counted(t, fmt.Sprint("key ", i+1)); got != 1 {
			double++
			t.Errorf("the effect of key %d happened %d times, want 1", i+1, got)
		}
	}
	figure(t, "in Atomic mode with requests lost, late and doubled, each effect happens once", false, int64(keys), double,
		fmt.Sprintf("%d runs of handlers, %d transactions in doubt", ran.Load(), doubt.Load()))
}

func TestNewAtomic_OptionsOfLeases_Refused(t *testing.T) {
	t.Parallel()
	if _, err := NewAtomic(nil, nil); err == nil {
		t.Error("a nil store is no error")
	}
	s := openOn(t, answering(500, ""), "t", nil)
	if _, err := NewAtomic(s, &semel.Options{Lease: time.Minute, OnDoubt: semel.Park}); err == nil || !strings.Contains(err.Error(), "Lease") {
		t.Errorf("options of leases: %v, want an error that names them", err)
	}
	if _, err := NewAtomic(s, &semel.Options{Retention: time.Hour}); err != nil {
		t.Errorf("options of an Atomic: %v", err)
	}
}

func chargeStep(x *semel.Execution) semel.Call {
	step := x.Step("charge")
	step.Payload = semel.NoPayload()
	return step
}

func TestAtomic_ContextEndsBeforeCommit_IsErrCanceled(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(ctx, testCall("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		cancel()
		return store.Outcome{}, nil
	})
	if !errors.Is(err, semel.ErrCanceled) {
		t.Errorf("got %v, want ErrCanceled", err)
	}
}
