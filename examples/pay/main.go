// Command pay charges an account, once for each order. It is the program of
// docs/tutorial.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/sqlitestore"
)

// charge stands for the request to a bank. The bank is a file with a line for each
// charge. A slow bank books the charge, and answers a minute later.
func charge(ctx context.Context, key, account string, cents int, slow bool) (receipt string, err error) {
	bank, err := os.OpenFile("bank.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", semel.NoEffect(err) // nothing was sent to the bank
	}
	defer bank.Close()
	if _, err := fmt.Fprintf(bank, "%s pays %d cents, key %s\n", account, cents, key); err != nil {
		return "", err // nobody knows whether the bank has booked it
	}
	fmt.Println("the bank has booked", cents, "cents")
	if slow {
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return fmt.Sprintf("receipt: %s paid %d cents", account, cents), nil
}

func pay(ctx context.Context, order, account string, cents int, slow bool) error {
	store, err := sqlitestore.Open(ctx, "semel.db", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	guard, err := semel.New(store, &semel.Options{OnDoubt: semel.Park, Lease: 10 * time.Second})
	if err != nil {
		return err
	}
	call := semel.Call{Operation: "charge", Tenant: account, Key: order, Payload: semel.JSON(cents)}
	receipt, err := semel.Do(ctx, guard, call, func(ctx context.Context, x *semel.Execution) (string, error) {
		return charge(ctx, x.DownstreamKey("bank"), account, cents, slow)
	})
	if err != nil {
		return err
	}
	fmt.Println(receipt)
	return nil
}

func main() {
	slow := flag.Bool("slow", false, "the bank answers after a minute")
	flag.Parse()
	cents, err := strconv.Atoi(flag.Arg(2))
	if err == nil {
		err = pay(context.Background(), flag.Arg(0), flag.Arg(1), cents, *slow)
	}
	if err != nil {
		fmt.Println("pay:", err)
		os.Exit(1)
	}
}
