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
