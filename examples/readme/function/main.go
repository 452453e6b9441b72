package main

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/sqlitestore"
)

type Payment struct {
	ID, Account string
	Cents       int
}

// Charge answers every duplicate with the first receipt. After a crash it may run
// again, so it passes the bank a key that stays the same.
func Charge(ctx context.Context, guard *semel.Guard, p Payment) (receipt string, err error) {
	call := semel.Call{Operation: "charge", Tenant: p.Account, Key: p.ID, Payload: semel.JSON(p)}
	return semel.Do(ctx, guard, call, func(ctx context.Context, x *semel.Execution) (string, error) {
		fmt.Println("charging", p.Cents, "cents with the bank's key", x.DownstreamKey("bank"))
		return "receipt of " + p.ID, nil
	})
}

func main() {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, "semel.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	guard, err := semel.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 { // a client that retries
		receipt, err := Charge(ctx, guard, Payment{ID: "order-17", Account: "ann", Cents: 4200})
		fmt.Println(receipt, err)
	}
}
