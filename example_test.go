package semel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

type Payment struct {
	Account, ID string
	Cents       int
}

type Receipt struct{ Number string }

// psp is a payment service that charges once for each key.
var psp service

type service struct{ charged map[string]int }

func (s *service) Charge(_ context.Context, key string, in Payment) (Receipt, error) {
	if in.Cents > 100_00 {
		return Receipt{}, ErrDeclined
	}
	if s.charged == nil {
		s.charged = map[string]int{}
	}
	if s.charged[key] == 0 {
		s.charged[key] = in.Cents
	}
	return Receipt{"r-" + in.ID}, nil
}

// bank is a bank that wires again for each request, but refuses a request with a lower
// fencing token than the highest that it has seen.
var bank wireService

type wireService struct {
	sent  bool
	fence uint64
}

func (b *wireService) Wire(_ context.Context, fence uint64, _ Payment) (Receipt, error) {
	if fence < b.fence {
		return Receipt{}, errors.New("the fencing token is too low")
	}
	b.sent, b.fence = true, fence
	return Receipt{"w-sent"}, nil
}

func (b *wireService) Find(_ context.Context, fence uint64) (Receipt, bool, error) {
	b.fence = max(b.fence, fence)
	return Receipt{"w-found"}, b.sent, nil
}

const charge = "charge"

func Charge(ctx context.Context, guard *semel.Guard, in Payment) (Receipt, error) {
	call := semel.Call{Operation: charge, Tenant: in.Account, Key: in.ID, Payload: semel.JSON(in)}
	return semel.Do(ctx, guard, call, func(ctx context.Context, x *semel.Execution) (Receipt, error) {
		return psp.Charge(ctx, x.DownstreamKey("psp"), in) // the PSP drops a repeat by this key
	})
}

func ExampleDo() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	in := Payment{Account: "ann", ID: "order-1", Cents: 10_00}
	for range 3 {
		receipt, err := Charge(context.Background(), guard, in)
		fmt.Println(receipt.Number, err)
	}
	in.Cents = 99_00
	_, err = Charge(context.Background(), guard, in)
	fmt.Println(errors.Is(err, semel.ErrMismatch))
	// Output:
	// r-order-1 <nil>
	// r-order-1 <nil>
	// r-order-1 <nil>
	// true
}

var ErrDeclined = &semel.Failure{Code: "card_declined", Message: "the card was declined"}

// A Failure is kept. The first caller and each duplicate get it.
func ExampleFailure() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	in := Payment{Account: "ann", ID: "order-2", Cents: 500_00}
	for range 2 {
		_, err := Charge(context.Background(), guard, in)
		fmt.Println(errors.Is(err, ErrDeclined), err)
	}
	// Output:
	// true the card was declined
	// true the card was declined
}

// A job without a result. A duplicate waits for the first call to end.
func ExampleOnce() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	const monthlyInvoices = "monthly invoices"
	call := semel.Call{Operation: monthlyInvoices, Tenant: semel.Shared, Key: "2026-11", Payload: semel.NoPayload()}
	call.Wait = 5 * time.Second
	for range 2 {
		err = semel.Once(context.Background(), guard, call, func(ctx context.Context, x *semel.Execution) error {
			fmt.Println("invoices sent")
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// invoices sent
	// <nil>
	// <nil>
}

// A wire transfer must not be repeated. In case of doubt the call is parked, and a
// reconciler asks the bank what happened.
func ExampleOptions_park() {
	st := memstore.New(nil) // use a durable store in a service, because this one forgets parked calls
	wires, err := semel.New(st, &semel.Options{
		OnDoubt: semel.Park,
		Reconcile: func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
			receipt, found, err := bank.Find(ctx, x.Fence()) // it refuses lower fences from now on
			switch {
			case err != nil:
				return semel.Verdict{}, err // still parked
			case found:
				return semel.Happened(receipt), nil
			}
			return semel.DidNotHappen(), nil // and a frozen handler that wakes up has too low a token
		},
	})
	if err != nil {
		panic(err)
	}
	call := semel.Call{Operation: charge, Tenant: "ann", Key: "order-3", Payload: semel.NoPayload()}
	_, err = semel.Do(context.Background(), wires, call, func(ctx context.Context, x *semel.Execution) (Receipt, error) {
		_, _ = bank.Wire(ctx, x.Fence(), Payment{ID: "order-3", Cents: 1})
		return Receipt{}, errors.New("the connection broke before the answer came")
	})
	fmt.Println(errors.Is(err, semel.ErrParked))
	receipt, err := semel.Do(context.Background(), wires, call, func(context.Context, *semel.Execution) (Receipt, error) {
		panic("never runs again by itself")
	})
	fmt.Println(receipt.Number, err)
	// Output:
	// true
	// w-found <nil>
}

// Reserve accepts a call now, and a worker runs it later. The token can be delivered
// any number of times.
func ExampleGuard_Reserve() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	const report = "report"
	ticket, err := guard.Reserve(context.Background(), semel.Call{Operation: report, Tenant: "ann", Key: "2026", Payload: semel.NoPayload()})
	if err != nil {
		panic(err)
	}
	for range 2 { // the worker gets the token twice
		call, err := guard.Redeem(ticket.Token)
		if err != nil {
			panic(err)
		}
		err = semel.Once(context.Background(), guard, call, func(ctx context.Context, x *semel.Execution) error {
			fmt.Println("report", x.Key())
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// report 2026
	// <nil>
	// <nil>
}

// Steps are recovery points: a step that has completed does not run again.
func ExampleExecution_Step() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	mailServerUp := false
	signUp := func(ctx context.Context, x *semel.Execution) error {
		id, err := semel.Do(ctx, guard, x.Step("create"), func(context.Context, *semel.Execution) (int, error) {
			fmt.Println("account created")
			return 7, nil
		})
		if err != nil {
			return err
		}
		return semel.Once(ctx, guard, x.Step("mail"), func(context.Context, *semel.Execution) error {
			if !mailServerUp {
				return errors.New("mail server down")
			}
			fmt.Println("mail sent to", id)
			return nil
		})
	}
	call := semel.Call{Operation: "sign up", Tenant: semel.Shared, Key: "ann@example.org", Payload: semel.NoPayload()}
	fmt.Println(semel.Once(context.Background(), guard, call, signUp))
	mailServerUp = true
	fmt.Println(semel.Once(context.Background(), guard, call, signUp))
	// Output:
	// account created
	// mail server down
	// mail sent to 7
	// <nil>
}

// Each call that has ended is counted once, by a library for metrics of your own.
func ExampleEvent_Outcome() {
	calls := map[string]int{} // stands for a counter with two labels
	count := func(operation, outcome string) { calls[operation+" "+outcome]++ }

	logEvents := semel.LogEvents(nil)
	guard, err := semel.New(memstore.New(nil), &semel.Options{Observe: func(ctx context.Context, e semel.Event) {
		if outcome := e.Outcome(); outcome != "" {
			count(e.Operation, outcome) // with client_golang: calls.WithLabelValues(e.Operation, outcome).Inc()
		}
		logEvents(ctx, e) // because a function of your own turns the default log off
	}})
	if err != nil {
		panic(err)
	}
	call := semel.Call{Operation: "mail", Tenant: "ann", Key: "welcome", Payload: semel.NoPayload()}
	for range 3 { // a client that retries
		if err := semel.Once(context.Background(), guard, call, func(context.Context, *semel.Execution) error { return nil }); err != nil {
			panic(err)
		}
	}
	fmt.Println(calls)
	// Output: map[mail executed:1 mail replayed:2]
}
