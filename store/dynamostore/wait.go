package dynamostore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store"
)

// firstPoll is the first pause of a waiting call. Each pause is half as long again
// as the one before, up to maxPoll.
const (
	firstPoll = 20 * time.Millisecond
	maxPoll   = time.Second
)

// Wait implements store.Waiter: DynamoDB cannot notify, so Wait reads the record
// again and again, with growing pauses. Each look is one consistent GetItem: one
// read unit for each 4 KB of the record.
func (s *Store) Wait(ctx context.Context, seen store.Seen) error {
	for pause := firstPoll; sleep(ctx, pause/2+rand.N(pause)); pause = min(pause*3/2, maxPoll) {
		changed, err := s.changed(ctx, &seen)
		if err != nil || changed {
			return s.explain("wait", err)
		}
	}
	return context.Cause(ctx)
}

// changed reports whether more than a renewal has happened to a record.
func (s *Store) changed(ctx context.Context, seen *store.Seen) (bool, error) {
	consistent := true
	e := newExpression()
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.key(s.partition(seen.Key)), ConsistentRead: &consistent,
		ProjectionExpression: e.projection(leaseAttributes...), ExpressionAttributeNames: e.names,
	})
	if err != nil || len(out.Item) == 0 {
		return true, err
	}
	d := decoder{it: out.Item}
	same := d.text(attrOwner) == string(seen.Owner[:]) && uint64(d.number(attrFence)) == seen.Fence && d.text(attrState) == seen.State.String()
	return !same, d.err
}
