package minidyn

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// table is a table with items of the keys "pk" and an index of the attribute "due".
type table struct {
	*testing.T
	client *dynamodb.Client
}

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func newTable(t *testing.T) table {
	c := dynamotest.Client(start(t))
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("t"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: "S"}, {AttributeName: aws.String("due"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: "HASH"}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("due"), KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("due"), KeyType: "HASH"}},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table{t, c}
}

func (t table) put(pk string) {
	t.Helper()
	_, err := t.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: item{"pk": text(pk), "due": text("A")}})
	if err != nil {
		t.Fatal(err)
	}
}

func (t table) update(pk, change string, values item) {
	t.Helper()
	_, err := t.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("t"), Key: item{"pk": text(pk)}, UpdateExpression: &change, ExpressionAttributeValues: values,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// faults are shown by a count that DynamoDB would make another.
var faults = map[string]struct {
	dynamoDB int
	count    func(t table) int
}{
	removes: {0, func(t table) int {
		t.put("a")
		t.update("a", "REMOVE due", nil)
		out, err := t.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: item{"pk": text("a")}})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Item) - 1
	}},
	scans: {4, func(t table) (n int) {
		for i := range 4 {
			t.put(fmt.Sprint(i))
		}
		for from := (item)(nil); n == 0 || from != nil; {
			out, err := t.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("t"), Limit: aws.Int32(2), ExclusiveStartKey: from})
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range out.Items {
				if _, err := t.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("t"), Key: item{"pk": it["pk"]}}); err != nil {
					t.Fatal(err)
				}
			}
			n, from = n+len(out.Items), out.LastEvaluatedKey
		}
		return n
	}},
	indexes: {4, func(t table) int {
		for i := range 2 {
			t.put(fmt.Sprint("put ", i))
			t.update(fmt.Sprint("made ", i), "SET due = :due", item{":due": text("B")})
		}
		n := 0
		for _, due := range []string{"A", "B"} {
			out, err := t.client.Query(t.Context(), &dynamodb.QueryInput{
				TableName: aws.String("t"), IndexName: aws.String("due"), KeyConditionExpression: aws.String("due = :due"), ExpressionAttributeValues: item{":due": text(due)},
			})
			if err != nil {
				t.Fatal(err)
			}
			n += len(out.Items)
		}
		return n
	}},
}

// If minidyn has mended a fault, this test says so, and the tests that fail because of it
// can be taken from the list.
func TestMinidyn_Faults_AreThere(t *testing.T) {
	for fault, f := range faults {
		if n := f.count(newTable(t)); n == f.dynamoDB {
			t.Errorf("%q is mended: the count is %d; remove the fault and the tests that it concerns from the list", fault, n)
		}
	}
	for name, fault := range unable {
		if faults[fault].count == nil {
			t.Errorf("%s fails because of %q, which is not shown", name, fault)
		}
	}
}
