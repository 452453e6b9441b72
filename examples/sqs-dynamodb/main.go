// Command sqs-dynamodb takes orders from Amazon SQS and stores each of them once in
// DynamoDB, however often its message comes: Semel's record, the order and the change of
// the stock are one transaction. See its README.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
	sqsURL := flag.String("sqs", "", "the endpoint of an emulator of SQS; empty: AWS")
	dynamoURL := flag.String("dynamodb", "", "the endpoint of an emulator of DynamoDB; empty: AWS")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, *sqsURL, *dynamoURL, flag.Arg(0))
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// start makes the clients, with the region and the credentials from AWS's usual places.
func start(ctx context.Context, sqsURL, dynamoURL, verb string) error {
	cloud, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	c := &config{
		sqs: sqs.NewFromConfig(cloud, func(o *sqs.Options) {
			if sqsURL != "" {
				o.BaseEndpoint = aws.String(sqsURL)
			}
		}),
		dynamo: dynamodb.NewFromConfig(cloud, func(o *dynamodb.Options) {
			if dynamoURL != "" {
				o.BaseEndpoint = aws.String(dynamoURL)
			}
		}),
	}
	return c.run(ctx, verb)
}

type config struct {
	sqs    *sqs.Client
	dynamo *dynamodb.Client
}

func (c *config) run(ctx context.Context, verb string) error {
	switch verb {
	case "create":
		return create(ctx, c)
	case "serve":
		return serve(ctx, c)
	case "send": // each order twice, as a producer does that got no answer
		orders := []order{{"order-1", "book", 1}, {"order-2", "book", 2}, {"order-3", "pen", 10}}
		return send(ctx, c, append(orders, orders...)...)
	}
	return fmt.Errorf("%q: choose create, serve or send", verb)
}
