package semelsqs

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// sendWait is an option of a receive that must not wait. The SDK leaves a WaitTimeSeconds of
// zero out of the request, and SQS then waits as long as the queue's own
// ReceiveMessageWaitTimeSeconds says.
func sendWait(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Serialize.Insert(middleware.SerializeMiddlewareFunc("semelsqsSendWait", addWait), "OperationSerializer", middleware.After)
	})
}

// addWait adds the wait to a request of the protocol AWS JSON that has none.
func addWait(ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler) (out middleware.SerializeOutput, _ middleware.Metadata, err error) {
	req, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return next.HandleSerialize(ctx, in)
	}
	body, err := io.ReadAll(req.GetStream())
	if err != nil {
		return out, middleware.Metadata{}, fmt.Errorf("semelsqs: read the request: %w", err)
	}
	if fields, isJSON := bytes.CutPrefix(body, []byte("{\"")); isJSON && !bytes.Contains(body, []byte(`"WaitTimeSeconds"`)) {
		body = append([]byte(`{"WaitTimeSeconds":0,"`), fields...)
	}
	if in.Request, err = req.SetStream(bytes.NewReader(body)); err != nil {
		return out, middleware.Metadata{}, fmt.Errorf("semelsqs: write the request: %w", err)
	}
	return next.HandleSerialize(ctx, in)
}
