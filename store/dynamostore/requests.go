package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/semel-go/semel/store"
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

// refusalKey is the key of a request's *atomic.Pointer[error] in its context.
type refusalKey struct{}

// keepRefusals is an option of the client. If the context of a request ends in the pause
// after it was throttled, or met another change of the item, the client returns only the
// error of the context. The option adds ErrThrottled or store.ErrBusy to it, because the
// server has answered.
func keepRefusals(stack *middleware.Stack) error {
	whole := middleware.InitializeMiddlewareFunc("semelRefusedRequest",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			refusal := new(atomic.Pointer[error])
			out, metadata, err := next.HandleInitialize(context.WithValue(ctx, refusalKey{}, refusal), in)
			if last := refusal.Load(); err != nil && ctx.Err() != nil && last != nil {
				err = fmt.Errorf("%w: %w", *last, err)
			}
			return out, metadata, err
		})
	attempt := middleware.DeserializeMiddlewareFunc("semelRefusedAttempt",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if refusal, ok := ctx.Value(refusalKey{}).(*atomic.Pointer[error]); ok {
				switch class := classify(err).err; {
				case errors.Is(class, ErrThrottled):
					refusal.Store(&ErrThrottled)
				case errors.Is(class, ErrConflict):
					refusal.Store(&store.ErrBusy) // not ErrConflict, which says that nothing was changed
				}
			}
			return out, metadata, err
		})
	return errors.Join(stack.Initialize.Add(whole, middleware.Before), stack.Deserialize.Add(attempt, middleware.Before))
}
