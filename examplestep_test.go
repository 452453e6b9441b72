package semel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

type bankClient struct{}

func (bankClient) Charge(_ context.Context, _ string, cents int) (string, error) {
	fmt.Println("charged", cents)
	return "receipt 4711", nil
}

// mailClient fails the first time.
type mailClient struct{ tries int }

func (m *mailClient) Send(_ context.Context, text string) error {
	if m.tries++; m.tries == 1 {
		return errors.New("the mail server is down")
	}
	fmt.Println("mailed", text)
	return nil
}

// The second attempt gets the receipt of the first, and does not charge again.
func ExampleExecution_Step_receipt() {
	ctx := context.Background()
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	var bank bankClient
	var mail mailClient
	const cents = 4200
	call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	for range 2 {
		err := semel.Once(ctx, guard, call, func(ctx context.Context, x *semel.Execution) error {
			receipt, err := semel.Do(ctx, guard, x.Step("charge"), func(ctx context.Context, x *semel.Execution) (string, error) {
				return bank.Charge(ctx, x.DownstreamKey("bank"), cents)
			})
			if err != nil {
				return err
			}
			return semel.Once(ctx, guard, x.Step("mail"), func(ctx context.Context, x *semel.Execution) error {
				return mail.Send(ctx, receipt)
			})
		})
		fmt.Println(err)
	}
	// Output:
	// charged 4200
	// the mail server is down
	// mailed receipt 4711
	// <nil>
}

// bankRecords is a bank that knows its payments by their idempotency keys.
type bankRecords map[string]string

// Charge has its effect, and its answer is lost.
func (b bankRecords) Charge(_ context.Context, key string, cents int) (string, error) {
	b[key] = fmt.Sprintf("receipt for %d", cents)
	return "", errors.New("connection reset")
}

func (b bankRecords) Find(_ context.Context, key string) (receipt string, paid bool, err error) {
	receipt, paid = b[key]
	return receipt, paid, nil
}

// The bank may have charged, so the call is parked. The reconciler asks the bank by the key
// that the step has sent.
func ExampleExecution_StepDownstreamKey() {
	ctx := context.Background()
	bank, store := bankRecords{}, memstore.New(nil)
	ask := func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		receipt, paid, err := bank.Find(ctx, x.StepDownstreamKey("charge", "bank"))
		switch {
		case err != nil:
			return semel.Verdict{}, err // it stays parked
		case !paid:
			return semel.DidNotHappen(), nil
		}
		return semel.Happened(receipt), nil
	}
	guard, err := semel.New(store, &semel.Options{OnDoubt: semel.Park, Reconcile: ask})
	if err != nil {
		panic(err)
	}
	call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	for range 2 {
		receipt, err := semel.Do(ctx, guard, call, func(ctx context.Context, x *semel.Execution) (string, error) {
			return semel.Do(ctx, guard, x.Step("charge"), func(ctx context.Context, x *semel.Execution) (string, error) {
				return bank.Charge(ctx, x.DownstreamKey("bank"), 4200)
			})
		})
		fmt.Printf("%q, in doubt: %v\n", receipt, errors.Is(err, semel.ErrParked))
	}
	fmt.Println(len(bank), "payment")
	// Output:
	// "", in doubt: true
	// "receipt for 4200", in doubt: false
	// 1 payment
}
