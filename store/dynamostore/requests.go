package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// request is a method of the client.
type request[In, Out any] = func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// requests are the methods of the client that the store uses. A store with the client
// itself in a field links all methods of the client, 2 MB, into each program that finds
// methods by their names, as text/template and parsers of command lines do.
type requests struct {
	BatchGetItem              request[dynamodb.BatchGetItemInput, dynamodb.BatchGetItemOutput]
	CreateTable               request[dynamodb.CreateTableInput, dynamodb.CreateTableOutput]
	DeleteItem                request[dynamodb.DeleteItemInput, dynamodb.DeleteItemOutput]
	DescribeContinuousBackups request[dynamodb.DescribeContinuousBackupsInput, dynamodb.DescribeContinuousBackupsOutput]
	DescribeTable             request[dynamodb.DescribeTableInput, dynamodb.DescribeTableOutput]
	DescribeTimeToLive        request[dynamodb.DescribeTimeToLiveInput, dynamodb.DescribeTimeToLiveOutput]
	GetItem                   request[dynamodb.GetItemInput, dynamodb.GetItemOutput]
	PutItem                   request[dynamodb.PutItemInput, dynamodb.PutItemOutput]
	Query                     request[dynamodb.QueryInput, dynamodb.QueryOutput]
	Scan                      request[dynamodb.ScanInput, dynamodb.ScanOutput]
	TransactWriteItems        request[dynamodb.TransactWriteItemsInput, dynamodb.TransactWriteItemsOutput]
	UpdateItem                request[dynamodb.UpdateItemInput, dynamodb.UpdateItemOutput]
	UpdateTable               request[dynamodb.UpdateTableInput, dynamodb.UpdateTableOutput]
	UpdateTimeToLive          request[dynamodb.UpdateTimeToLiveInput, dynamodb.UpdateTimeToLiveOutput]
}

func requestsOf(c *dynamodb.Client) requests {
	return requests{
		BatchGetItem: c.BatchGetItem, CreateTable: c.CreateTable, DeleteItem: c.DeleteItem,
		DescribeContinuousBackups: c.DescribeContinuousBackups, DescribeTable: c.DescribeTable, DescribeTimeToLive: c.DescribeTimeToLive,
		GetItem: c.GetItem, PutItem: c.PutItem, Query: c.Query, Scan: c.Scan, TransactWriteItems: c.TransactWriteItems,
		UpdateItem: c.UpdateItem, UpdateTable: c.UpdateTable, UpdateTimeToLive: c.UpdateTimeToLive,
	}
}

// throttledKey is the key of a request's *atomic.Bool in its context.
type throttledKey struct{}

// keepThrottled is an option of the client. If the context of a request ends in the pause
// after it was throttled, the client returns only the error of the context. The option adds
// ErrThrottled to it, because the server has answered.
func keepThrottled(stack *middleware.Stack) error {
	whole := middleware.InitializeMiddlewareFunc("semelThrottledRequest",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			throttled := new(atomic.Bool)
			out, metadata, err := next.HandleInitialize(context.WithValue(ctx, throttledKey{}, throttled), in)
			if err != nil && ctx.Err() != nil && throttled.Load() {
				err = fmt.Errorf("%w: %w", ErrThrottled, err)
			}
			return out, metadata, err
		})
	attempt := middleware.DeserializeMiddlewareFunc("semelThrottledAttempt",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if throttled, ok := ctx.Value(throttledKey{}).(*atomic.Bool); ok && errors.Is(classify(err).err, ErrThrottled) {
				throttled.Store(true)
			}
			return out, metadata, err
		})
	return errors.Join(stack.Initialize.Add(whole, middleware.Before), stack.Deserialize.Add(attempt, middleware.Before))
}
