package main

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/semel-go/semel/store/dynamostore"
)

const (
	queue   = "orders"
	records = "semel" // the table of Semel's records
	shop    = "shop"  // the application's table: orders, and the stock of each item
)

// createLimit is how long DynamoDB may take to make a table.
const createLimit = time.Minute

// create makes the queues and the tables. It can be repeated.
func create(ctx context.Context, c *config) error {
	for _, name := range []string{queue, queue + "-dead-letters", queue + "-quarantine"} {
		if _, err := c.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name}); err != nil {
			return err
		}
	}
	st, err := dynamostore.New(c.dynamo, records, nil)
	if err != nil {
		return err
	}
	if err := st.Migrate(ctx); err != nil {
		return err
	}
	_, err = c.dynamo.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(shop), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
		return nil
	}
	if err != nil {
		return err
	}
	if err := dynamodb.NewTableExistsWaiter(c.dynamo).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(shop)}, createLimit); err != nil {
		return err
	}
	for _, item := range []string{"book", "pen"} {
		if _, err := c.dynamo.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(shop), Item: map[string]types.AttributeValue{
			"id": text("stock#" + item), "remaining": number(100),
		}}); err != nil {
			return err
		}
	}
	return nil
}
