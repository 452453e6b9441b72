package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/dynamostore"
)

// order is the body of a message.
type order struct {
	ID    string `json:"id"`
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}

type batchHandler = func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error)

// newHandler makes the function. The table of records has Semel's schema, the table of
// the shop has the partition key "id".
func newHandler(client *dynamodb.Client, records, shop string) (batchHandler, error) {
	st, err := dynamostore.New(client, records, nil)
	if err != nil {
		return nil, err
	}
	// Longer than the queue keeps a message, 4 days by default.
	bookings, err := dynamostore.NewAtomic(st, &semel.Options{Retention: 7 * 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	return semellambda.SQS(bookings, semellambda.Options[events.SQSMessage]{
		Operation:   "book",
		Tenant:      semellambda.Shared[events.SQSMessage], // order IDs are unique over all customers
		KeyPointers: []string{"/id"},                       // and not the message's ID: a producer may send an order twice
	}, func(ctx context.Context, m events.SQSMessage) error { return book(ctx, shop, m.Body) })
}

// book adds the order, and its price to the day's sales. DynamoDB writes both together
// with Semel's record, or nothing.
func book(ctx context.Context, shop, body string) error {
	var o order
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return semel.Final(err)
	}
	if o.Item == "" || o.Cents <= 0 {
		return semel.Final(fmt.Errorf("order %q: has no item or no price", o.ID))
	}
	tx, ok := dynamostore.TxFrom(ctx)
	if !ok {
		return errors.New("book: runs outside of a transaction")
	}
	price := &types.AttributeValueMemberN{Value: strconv.Itoa(o.Cents)}
	return tx.Add(
		types.TransactWriteItem{Put: &types.Put{TableName: &shop, Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: "order#" + o.ID}, "item": &types.AttributeValueMemberS{Value: o.Item}, "cents": price,
		}}},
		types.TransactWriteItem{Update: &types.Update{
			TableName: &shop, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "sales"}},
			UpdateExpression: aws.String("ADD cents :price"), ExpressionAttributeValues: map[string]types.AttributeValue{":price": price},
		}},
	)
}
