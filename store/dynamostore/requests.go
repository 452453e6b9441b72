package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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
