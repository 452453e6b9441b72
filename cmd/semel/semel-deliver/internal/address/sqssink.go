package address

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/outbox"
)

// parseSQSSink reads sqs://?region=NAME.
func parseSQSSink(a *address, _ *SinkOptions) (*Sink, error) {
	if len(a.hosts) != 1 || a.hosts[0] != "sqs" || len(a.path) > 0 || a.hasUser {
		return nil, errors.New("must be sqs://?region=NAME, because messages name their queues; credentials come from AWS's usual places, such as AWS_PROFILE or the machine's role")
	}
	region, endpoint := a.take("region"), a.take("endpoint")
	return &Sink{open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		client, err := sqsClient(ctx, region, endpoint)
		if err != nil {
			return nil, nil, err
		}
		if err := trySQS(ctx, client); err != nil {
			return nil, nil, err
		}
		sink, err := semelsqs.NewSink(client)
		return sink, noClose, err
	}}, nil
}

// trySQS makes a request whose refusal for a missing permission is an answer, too.
func trySQS(ctx context.Context, client *sqs.Client) error {
	_, err := client.ListQueues(ctx, &sqs.ListQueuesInput{MaxResults: aws.Int32(1)})
	e, answered := errors.AsType[smithy.APIError](err)
	switch {
	case err == nil:
		return nil
	case !answered:
		return fmt.Errorf("SQS gives no answer: %w; check the region, the endpoint and the network, and see who you are with: aws sts get-caller-identity", err)
	case e.ErrorCode() == "AccessDenied" || e.ErrorCode() == "AccessDeniedException":
		return nil // sqs:ListQueues is not needed
	}
	return fmt.Errorf("SQS refuses the request: %w; check the credentials, and see who you are with: aws sts get-caller-identity", err)
}
