package semelsqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/semel-go/semel/consume/driver"
)

// Info implements driver.Source. It asks SQS for the queue and for the queues of the
// copies, and its error names all that is wrong with them.
func (s *Source) Info(ctx context.Context) (driver.Info, error) {
	own, err := s.attributes(ctx, s.queue)
	if err != nil && !isUnknownQueue(err) {
		return driver.Info{}, explain(s.queue, err) // the other queues would fail in the same way
	}
	var errs []error
	if err != nil {
		errs = append(errs, explain(s.queue, err))
	}
	for _, name := range []string{s.opt.DeadLetters, s.opt.Quarantine} {
		a, err := s.attributes(ctx, name)
		switch {
		case err != nil:
			errs = append(errs, explain(name, err))
		case own == nil:
		case a["QueueArn"] == own["QueueArn"]:
			errs = append(errs, fmt.Errorf("queue %q: is the queue that is consumed, so copies would be consumed, too; give them another queue", name))
		case number(a, "MaximumMessageSize") < number(own, "MaximumMessageSize"):
			errs = append(errs, fmt.Errorf("queue %q: its MaximumMessageSize, %s, is less than the %s of %q, so a copy may not fit; raise it",
				name, a["MaximumMessageSize"], own["MaximumMessageSize"], s.name))
		}
	}
	if len(errs) > 0 {
		return driver.Info{}, fmt.Errorf("semelsqs: %w", errors.Join(errs...))
	}
	if s.opt.Visibility == 0 {
		s.seconds.Store(number(own, "VisibilityTimeout"))
	}
	if s.visibility() < time.Second {
		return driver.Info{}, fmt.Errorf("semelsqs: queue %q: its VisibilityTimeout is 0; set Options.Visibility, for example to 30s", s.name)
	}
	i := driver.Info{Horizon: time.Duration(number(own, "MessageRetentionPeriod")) * time.Second, AckWait: s.visibility()}
	if text := own["RedrivePolicy"]; text != "" {
		if i.DeliveryLimit, err = receiveLimit(text); err != nil {
			return driver.Info{}, fmt.Errorf("semelsqs: queue %q: RedrivePolicy %q: %w", s.name, text, err)
		}
		if s.opt.OrderKey != nil {
			return driver.Info{}, fmt.Errorf("semelsqs: queue %q: has a RedrivePolicy, and Options.OrderKey is set: SQS would count the receives of messages that wait for others, "+
				"and move them before they have run; remove the policy, because MaxAttempts and MaxDeliveries do its work, or set no Options.OrderKey (semel deliver: leave out --order)", s.name)
		}
	}
	s.single.Store(i.DeliveryLimit > 0 && s.isFIFO()) // a receive may return ten messages of one group, of which nine wait
	return i, nil
}

// receiveLimit is the maxReceiveCount of a redrive policy, which is a number or a text.
func receiveLimit(policy string) (int, error) {
	var p struct {
		MaxReceiveCount any `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(policy), &p); err != nil {
		return 0, err
	}
	return strconv.Atoi(fmt.Sprint(p.MaxReceiveCount))
}

func number(attributes map[string]string, name string) int64 {
	n, err := strconv.ParseInt(attributes[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s *Source) attributes(ctx context.Context, queue string) (map[string]string, error) {
	url, err := s.url(ctx, queue)
	if err != nil {
		return nil, err
	}
	out, err := s.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// url is the URL of a queue, which is given by its name or its URL.
func (s *Source) url(ctx context.Context, queue string) (string, error) {
	if strings.Contains(queue, "/") {
		return queue, nil
	}
	s.urlsMu.Lock()
	url, ok := s.urls[queue]
	s.urlsMu.Unlock()
	if ok {
		return url, nil
	}
	out, err := s.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if err != nil {
		return "", err
	}
	s.urlsMu.Lock()
	defer s.urlsMu.Unlock()
	s.urls[queue] = aws.ToString(out.QueueUrl)
	return s.urls[queue], nil
}

// queueURL is the URL of the queue that is consumed. Info has found it.
func (s *Source) queueURL() *string {
	if strings.Contains(s.queue, "/") {
		return &s.queue
	}
	s.urlsMu.Lock()
	defer s.urlsMu.Unlock()
	url := s.urls[s.queue]
	return &url
}

func isUnknownQueue(err error) bool {
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return true
	}
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && (e.ErrorCode() == "AWS.SimpleQueueService.NonExistentQueue" || e.ErrorCode() == "QueueDoesNotExist")
}

// explain adds the next step to an error about a queue.
func explain(queue string, err error) error {
	e, answered := errors.AsType[smithy.APIError](err)
	switch {
	case isUnknownQueue(err):
		kind := ""
		if isFIFOName(queue) {
			kind = " --attributes FifoQueue=true"
		}
		name := queue[strings.LastIndexByte(queue, '/')+1:]
		return fmt.Errorf("queue %q does not exist in this account and region; create it with: aws sqs create-queue --queue-name %s%s: %w", queue, name, kind, err)
	case strings.Contains(err.Error(), "get identity: "): // the SDK has no type for it
		return fmt.Errorf("queue %q: the client has no credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run the program with a role: %w", queue, err)
	case !answered:
		return fmt.Errorf("queue %q: SQS gives no answer; check the client's endpoint, region and network: %w", queue, err)
	}
	switch e.ErrorCode() {
	case "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "InvalidSecurity", "InvalidAccessKeyId":
		return fmt.Errorf("queue %q: SQS refuses the credentials; check the client's access key, secret and session token: %w", queue, err)
	case "AccessDenied", "AccessDeniedException":
		return fmt.Errorf("queue %q: access is denied; allow sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage and ChangeMessageVisibility for the queue, "+
			"and sqs:GetQueueUrl, GetQueueAttributes and SendMessage for the queues of copies: %w", queue, err)
	}
	return fmt.Errorf("queue %q: %w", queue, err)
}
