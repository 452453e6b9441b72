package dynamostore_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/dynamostore"
)

func ExampleNew() {
	cfg := aws.Config{Region: "eu-central-1"} // or config.LoadDefaultConfig(ctx)
	st, err := dynamostore.New(dynamodb.NewFromConfig(cfg), "orders", &dynamostore.Options{
		PartitionKey: "PK", SortKey: "SK", // a table that has other data, too
	})
	if err != nil {
		panic(err)
	}
	guard, err := semel.New(st, nil)
	if err != nil {
		panic(err)
	}
	_ = func(ctx context.Context) (string, error) {
		return semel.Do(ctx, guard, semel.Call{Operation: "charge", Tenant: "acme", Key: "order-17", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (string, error) { return "charged", nil })
	}
	fmt.Println("ready")
	// Output: ready
}

// The order and the record of the call are written together, once.
func ExampleDo() {
	cfg := aws.Config{Region: "eu-central-1"}
	st, err := dynamostore.New(dynamodb.NewFromConfig(cfg), "orders", nil)
	if err != nil {
		panic(err)
	}
	atomic, err := dynamostore.NewAtomic(st, nil)
	if err != nil {
		panic(err)
	}
	_ = func(ctx context.Context, tenant, key string, order map[string]types.AttributeValue) (string, error) {
		call := semel.Call{Operation: "order", Tenant: tenant, Key: key, Payload: semel.NoPayload()}
		return dynamostore.Do(ctx, atomic, call, func(ctx context.Context, x *semel.Execution, tx *dynamostore.Tx) (string, error) {
			put := &types.Put{TableName: aws.String("orders"), Item: order}
			return "accepted", tx.Add(types.TransactWriteItem{Put: put})
		})
	}
	fmt.Println("ready")
	// Output: ready
}
