package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// Four invocations get the same batch at the same time, and then once more: each order
// is booked once, and a wrong one is reported.
func TestHandler_BatchesRepeated_EachOrderBookedOnce(t *testing.T) {
	client := dynamotest.Client(dynamotest.URL(t))
	st, err := dynamostore.New(client, "records", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkTemplate(t, client)
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("shop"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(client, "records", "shop")
	if err != nil {
		t.Fatal(err)
	}
	var batch events.SQSEvent
	for i := range 10 { // each order twice
		body, err := json.Marshal(order{ID: fmt.Sprint("order-", i%5), Item: "book", Cents: 1990})
		if err != nil {
			t.Fatal(err)
		}
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprint(i), Body: string(body)})
	}
	batch.Records = append(batch.Records, events.SQSMessage{MessageId: "wrong", Body: `{"id":"order-9"}`})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := handler(t.Context(), batch); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r, err := handler(t.Context(), batch)
	if err != nil || len(r.BatchItemFailures) != 1 || r.BatchItemFailures[0].ItemIdentifier != "wrong" {
		t.Errorf("the last batch: %+v, %v; want the wrong order alone", r, err)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("shop"), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "sales"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum, _ := out.Item["cents"].(*types.AttributeValueMemberN); sum == nil || sum.Value != "9950" {
		t.Errorf("the sales are %v; want 9950, five orders", out.Item)
	}
}

// checkTemplate compares the template's table of records with the one that Migrate has
// made.
func checkTemplate(t *testing.T, client *dynamodb.Client) {
	t.Helper()
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("records")})
	if err != nil {
		t.Fatal(err)
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String("records")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"FunctionResponseTypes: [ReportBatchItemFailures]", "RedrivePolicy:",
		fmt.Sprintf("TimeToLiveSpecification: { AttributeName: %s, Enabled: true }", *ttl.TimeToLiveDescription.AttributeName),
	}
	for _, a := range out.Table.AttributeDefinitions {
		want = append(want, fmt.Sprintf("{ AttributeName: %s, AttributeType: %s }", *a.AttributeName, a.AttributeType))
	}
	keys := out.Table.KeySchema
	for _, i := range out.Table.GlobalSecondaryIndexes {
		want, keys = append(want, "IndexName: "+*i.IndexName), append(keys, i.KeySchema...)
	}
	for _, k := range keys {
		want = append(want, fmt.Sprintf("{ AttributeName: %s, KeyType: %s }", *k.AttributeName, k.KeyType))
	}
	b, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range want {
		if !strings.Contains(string(b), line) {
			t.Errorf("the template has no %q", line)
		}
	}
}
