package address

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelsqs"
)

// parseSQS reads sqs://QUEUE?region=NAME.
func parseSQS(a *address, o *Options) (*Broker, error) {
	if len(a.hosts) != 1 || len(a.path) > 0 || a.hasUser {
		return nil, errors.New("must be sqs://QUEUE?region=NAME; credentials come from AWS's usual places, such as AWS_PROFILE or the machine's role")
	}
	queue, region, endpoint := a.hosts[0], a.take("region"), a.take("endpoint")
	s := &semelsqs.Options{DeadLetters: o.DeadLetters, Quarantine: o.Quarantine}
	var err error
	if s.Visibility, err = a.span("visibility"); err != nil {
		return nil, err
	}
	unordered := none
	if !strings.HasSuffix(queue, ".fifo") {
		unordered = nil // the default; a queue with a redrive policy takes no other
	}
	if o.Order != "" && o.Order != "group" {
		if s.OrderKey, err = order(o, map[string]func(*consume.Message) string{"none": unordered, "group": nil}); err != nil {
			return nil, err
		}
	}
	if _, err := semelsqs.New(sqs.New(sqs.Options{}), queue, s); err != nil {
		return nil, err
	}
	group := o.Group
	if group == "" {
		group = queue
	}
	return &Broker{Group: group, open: func(ctx context.Context) (driver.Source, func() error, error) {
		client, err := sqsClient(ctx, region, endpoint)
		if err != nil {
			return nil, nil, err
		}
		src, err := semelsqs.New(client, queue, s)
		if err != nil {
			return nil, nil, err
		}
		return src, func() error { return nil }, nil
	}}, nil
}

// sqsClient makes a client with credentials from AWS's usual places.
func sqsClient(ctx context.Context, region, endpoint string) (*sqs.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.Logger = logging.Nop{} // the SDK's warnings are also in its errors
		if region != "" {
			o.Region = region
		}
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}), nil
}
