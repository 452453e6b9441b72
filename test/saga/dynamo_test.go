//go:build unix

package saga

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// The bookings in DynamoDB are items in the table of the records, which have a prefix of
// their own.
const (
	dynamoTable   = "saga"
	bookingPrefix = "booking#"
)

func dynamoStore(s *spec) (*dynamostore.Store, error) {
	return dynamostore.New(dynamotest.Client(s.URL), dynamoTable, &dynamostore.Options{IndexShards: 1, MaxSkew: 200 * time.Millisecond})
}

func openDynamo(s *spec, o *opened) (booking, error) {
	st, err := dynamoStore(s)
	if err != nil {
		return nil, err
	}
	o.st, o.end = st, func() error { return nil }
	o.atomic, err = dynamostore.NewAtomic(st, nil)
	return func(ctx context.Context, id string, change int) error {
		tx, ok := dynamostore.TxFrom(ctx)
		if !ok {
			return errors.New("no transaction")
		}
		table, update := dynamoTable, "ADD n :n"
		return tx.Add(types.TransactWriteItem{Update: &types.Update{
			TableName: &table, UpdateExpression: &update,
			Key:                       map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: bookingPrefix + id}},
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: strconv.Itoa(change)}},
		}})
	}, err
}

func dynamoBookings(ctx context.Context, s *spec) (count map[string]int, err error) {
	count = map[string]int{}
	table, filter := dynamoTable, "begins_with(pk, :prefix)"
	pages := dynamodb.NewScanPaginator(dynamotest.Client(s.URL), &dynamodb.ScanInput{
		TableName: &table, FilterExpression: &filter,
		ExpressionAttributeValues: map[string]types.AttributeValue{":prefix": &types.AttributeValueMemberS{Value: bookingPrefix}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			key, _ := it["pk"].(*types.AttributeValueMemberS)
			n, _ := it["n"].(*types.AttributeValueMemberN)
			if key == nil || n == nil {
				return nil, errors.New("a booking has no key or no number")
			}
			if count[key.Value[len(bookingPrefix):]], err = strconv.Atoi(n.Value); err != nil {
				return nil, err
			}
		}
	}
	return count, nil
}
