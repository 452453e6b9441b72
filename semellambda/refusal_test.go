package semellambda_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semellambda"
)

// A function may call a service with a Semel of its own, and pass on its refusal.
func TestProxy_ServiceRefuses_RefusalIsNotKept(t *testing.T) {
	runs := 0
	h := must[func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.LambdaFunctionURLRequest], withOperation(nil),
		func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
			if runs++; runs == 1 {
				return events.LambdaFunctionURLResponse{StatusCode: 422, Headers: map[string]string{"semel-refusal": semelhttp.CodePayloadMismatch}}, nil
			}
			return events.LambdaFunctionURLResponse{StatusCode: 201}, nil
		}))
	for i, want := range []int{422, 201, 201} {
		e := events.LambdaFunctionURLRequest{RawPath: "/pay/7", Headers: headersWith("k"), Body: "x"}
		e.RequestContext.HTTP.Method = "POST"
		if r, err := h(t.Context(), e); err != nil || r.StatusCode != want {
			t.Errorf("answer %d: %d, %v; want %d", i, r.StatusCode, err, want)
		}
	}
}
