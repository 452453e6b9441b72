// Command lambda-sqs-dynamodb is an AWS Lambda function that books orders from an SQS
// queue in DynamoDB, each of them once, however often its message comes: the record
// of the order and its booking are one transaction. See its README.
package main

import (
	"cmp"
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if url := os.Getenv("DYNAMODB_URL"); url != "" { // an emulator
			o.BaseEndpoint = aws.String(url)
		}
	})
	handler, err := newHandler(client, cmp.Or(os.Getenv("RECORDS_TABLE"), "semel"), cmp.Or(os.Getenv("SHOP_TABLE"), "shop"))
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(handler)
}
