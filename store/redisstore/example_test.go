package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	st, err := redisstore.New(client, &redisstore.Options{Replicas: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = st.Close() }() // the client stays the application's
	guard, err := semel.New(st, nil)
	if err != nil {
		log.Fatal(err)
	}
	call := semel.Call{Operation: "send mail", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
	res, err := guard.Run(context.Background(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte("sent")}, nil
	})
	fmt.Println(string(res.Outcome.Body), err)
}

func ExampleOpen() {
	ctx := context.Background()
	st, err := redisstore.Open(ctx, "redis+sentinel://localhost:26379?master_name=main", nil)
	if err != nil {
		log.Fatal(err) // the server evicts, for example
	}
	defer func() { _ = st.Close() }()
	if err := st.Check(ctx); err != nil {
		log.Print(err) // it names settings with which records may be lost
	}
}
