package semellambda_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/memstore"
)

type (
	gatewayRequest  = events.APIGatewayV2HTTPRequest
	gatewayResponse = events.APIGatewayV2HTTPResponse
)

// post sends two requests with one key to a function whose handler answers with response.
func post(t *testing.T, response gatewayResponse) (answers [2]gatewayResponse, runs int) {
	t.Helper()
	guard, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	h, err := semellambda.Proxy(guard, shared[gatewayRequest], nil, func(context.Context, gatewayRequest) (gatewayResponse, error) {
		runs++
		return response, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := gatewayRequest{RouteKey: "POST /pay", RawPath: "/pay", Headers: map[string]string{"idempotency-key": "k"}}
	r.RequestContext.HTTP.Method = "POST"
	for i := range answers {
		if answers[i], err = h(t.Context(), r); err != nil {
			t.Errorf("request %d: %v", i+1, err)
		}
	}
	return answers, runs
}

// A gateway drops the body of a 204, and sends a Content-Length of its own.
func TestProxy_ResponseThatGatewayTakes_IsThatOfDuplicates(t *testing.T) {
	length := func(v string) map[string]string { return map[string]string{"content-length": v} }
	for name, r := range map[string]gatewayResponse{
		"204 with a body":      {StatusCode: 204, Body: "{}"},
		"304 with a body":      {StatusCode: 304, Body: "{}"},
		"length in characters": {StatusCode: 201, Body: "naïve", Headers: length("5")},
		"length of the base64": {StatusCode: 201, Body: "aGVsbG8=", IsBase64Encoded: true, Headers: length("8")},
	} {
		a, runs := post(t, r)
		if a[0].StatusCode != r.StatusCode || a[0].StatusCode != a[1].StatusCode || a[0].Body != a[1].Body || a[1].Headers["Semel-Outcome"] != "" || runs != 1 {
			t.Errorf("%s: the first answer is %+v, the second %+v, after %d runs", name, a[0], a[1], runs)
		}
		if r.StatusCode == 201 && a[0].Body == "" {
			t.Errorf("%s: the answer has no body", name)
		}
	}
}

func TestProxy_HeaderSaysWhatAnswerMeans_IsNotSent(t *testing.T) {
	for result, want := range map[string]int{"no-effect": 2, "final": 1} {
		a, runs := post(t, gatewayResponse{StatusCode: 503, Headers: map[string]string{"semel-result": result}})
		if a[1].StatusCode != 503 || runs != want || a[0].Headers["Semel-Result"] != "" || a[1].Headers["Semel-Result"] != "" {
			t.Errorf("%s: got %+v after %d runs, want 503 after %d", result, a, runs, want)
		}
	}
}

// A client cannot leave an invocation, but the process is stopped at its end.
func TestProxy_Detach_HandlersContextEndsBeforeInvocation(t *testing.T) {
	const limit = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	end, _ := ctx.Deadline()
	o := &semelhttp.Options{Detach: true}
	var handlersEnd time.Time
	h := must[func(context.Context, gatewayRequest) (gatewayResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[gatewayRequest], o,
		func(ctx context.Context, _ gatewayRequest) (gatewayResponse, error) {
			handlersEnd, _ = ctx.Deadline()
			return gatewayResponse{StatusCode: 201}, nil
		}))
	request := gatewayRequest{RouteKey: "POST /pay", RawPath: "/pay", Headers: headersWith("key")}
	request.RequestContext.HTTP.Method = "POST"
	r, err := h(ctx, request)
	if left := end.Sub(handlersEnd); r.StatusCode != 201 || err != nil || left < 400*time.Millisecond || left > limit {
		t.Errorf("%d, %v: the handler's context ends %v before the invocation; want 500 ms", r.StatusCode, err, left)
	}
	if !o.Detach {
		t.Error("the options of the caller were changed")
	}
}
