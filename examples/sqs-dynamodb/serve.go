package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/store/dynamostore"
)

type order struct {
	ID    string `json:"id"`
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// serve handles orders until ctx ends.
func serve(ctx context.Context, c *config) error {
	st, err := dynamostore.New(c.dynamo, records, nil)
	if err != nil {
		return err
	}
	// Outcomes are kept for 7 days, longer than the queue keeps a message: 4 by default.
	once, err := dynamostore.NewAtomic(st, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	source, err := semelsqs.New(c.sqs, queue, nil)
	if err != nil {
		return err
	}
	keys := consume.Keyed("orders", consume.FromHeader(consume.KeyHeader))
	// Few at once, because transactions that change one stock refuse each other.
	orders, err := consume.New(once, keys, c.keep, &consume.Options{Concurrency: 8})
	if err != nil {
		return err
	}
	return orders.Serve(ctx, source)
}

// keep is the handler. DynamoDB writes the order, the stock and the record that the
// message was handled together, or nothing. Until keep returns, nothing is written, and
// so it may read but must have no other effect.
func (c *config) keep(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil {
		return semel.Final(err) // to the dead letters; another error is tried again later
	}
	tx, ok := dynamostore.TxFrom(ctx)
	if !ok {
		return errors.New("an order needs a transaction")
	}
	remaining, err := c.stock(ctx, o.Item)
	if err != nil {
		return err
	}
	if o.Count <= 0 || remaining < o.Count {
		return semel.Final(fmt.Errorf("%s: there are no %d left", o.Item, o.Count))
	}
	return tx.Add(
		types.TransactWriteItem{Put: &types.Put{TableName: aws.String(shop), Item: map[string]types.AttributeValue{
			"id": text("order#" + o.ID), "item": text(o.Item), "count": number(o.Count),
		}}},
		// Another order may take the stock meanwhile. Then DynamoDB refuses the
		// transaction, and the message is tried again.
		types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String(shop), Key: map[string]types.AttributeValue{"id": text("stock#" + o.Item)},
			UpdateExpression: aws.String("SET remaining = remaining - :count"), ConditionExpression: aws.String("remaining >= :count"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":count": number(o.Count)},
		}},
	)
}

// stock is how many pieces of an item remain; zero: the shop does not have it.
func (c *config) stock(ctx context.Context, item string) (int, error) {
	out, err := c.dynamo.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(shop), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"id": text("stock#" + item)},
	})
	if err != nil || out.Item == nil {
		return 0, err
	}
	n, ok := out.Item["remaining"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%s: the stock is no number", item)
	}
	return strconv.Atoi(n.Value)
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
