package semellambda_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semellambda"
)

type restHandler = func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// A gateway keeps names as the client wrote them, and several keys are an error.
func TestProxy_TwoKeysInTwoSpellings_AreRefused(t *testing.T) {
	runs := 0
	h := must[restHandler](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayProxyRequest], nil,
		func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			runs++
			return events.APIGatewayProxyResponse{StatusCode: 201}, nil
		}))
	for _, e := range []events.APIGatewayProxyRequest{
		{Headers: map[string]string{"Idempotency-Key": "a", "idempotency-key": "b"}},
		{MultiValueHeaders: map[string][]string{"Idempotency-Key": {"a"}, "idempotency-key": {"b"}}},
		{Headers: map[string]string{"Idempotency-Key": "a", "idempotency-key": "b"}, MultiValueHeaders: map[string][]string{"Idempotency-Key": {"a"}, "idempotency-key": {"b"}}},
	} {
		e.HTTPMethod, e.Resource, e.Path, e.Body = "POST", "/pay", "/pay", "x"
		if r, err := h(t.Context(), e); err != nil || r.StatusCode != 400 || runs != 0 {
			t.Errorf("%+v: status %d, %d runs, %v", e, r.StatusCode, runs, err)
		}
	}
	one := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/pay", Path: "/pay", Body: "x",
		Headers: map[string]string{"idempotency-key": "a"}, MultiValueHeaders: map[string][]string{"idempotency-key": {"a"}}} // as a gateway sends it
	if r, err := h(t.Context(), one); err != nil || r.StatusCode != 201 || runs != 1 {
		t.Errorf("one key: status %d, %d runs, %v", r.StatusCode, runs, err)
	}
}

// A header without a value must not be null in the JSON of the response.
func TestProxy_AnswerNotKept_NoHeaderIsNull(t *testing.T) {
	h := must[restHandler](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayProxyRequest], &semelhttp.Options{NoStore: true},
		func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 201, Body: "secret"}, nil
		}))
	for range 2 {
		r, err := h(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/pay", Path: "/pay", Body: "x", Headers: headersWith("k")})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(r.MultiValueHeaders); err != nil || r.StatusCode != 201 || strings.Contains(string(b), "null") {
			t.Errorf("status %d, headers %s, %v", r.StatusCode, b, err)
		}
	}
}

// A target group with multi-value headers sends and takes only these.
func TestProxy_LoadBalancerWithMultiValueHeaders_AnswersInKind(t *testing.T) {
	runs := 0
	h := must[func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.ALBTargetGroupRequest], withOperation(nil),
		func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
			runs++
			return events.ALBTargetGroupResponse{StatusCode: 201, Body: "ok", MultiValueHeaders: map[string][]string{"Link": {"a", "b"}}}, nil
		}))
	for _, c := range []struct {
		keys         []string
		query        string
		status, runs int
	}{
		{[]string{"k"}, "a%20b", 201, 1},
		{[]string{"k"}, "a+b", 201, 1}, // another spelling of the same query
		{[]string{"k"}, "a-b", 422, 1},
		{[]string{"k", "other"}, "a%20b", 400, 1},
	} {
		r, err := h(t.Context(), events.ALBTargetGroupRequest{
			HTTPMethod: "POST", Path: "/pay", MultiValueHeaders: map[string][]string{"idempotency-key": c.keys, "host": {"api.example"}},
			MultiValueQueryStringParameters: map[string][]string{"q": {c.query}}, Body: "x",
		})
		if err != nil || r.StatusCode != c.status || runs != c.runs || r.Headers != nil || len(r.MultiValueHeaders) == 0 {
			t.Errorf("%+v: %+v, %v, %d runs", c, r, err, runs)
		}
		if c.status == 201 && len(r.MultiValueHeaders["Link"]) != 2 {
			t.Errorf("%+v: the headers are %v", c, r.MultiValueHeaders)
		}
	}
}

// nulls runs a handler with events of one kind, and returns the statuses.
func nulls[T semellambda.Request, R semellambda.Response](t *testing.T, status func(R) int, answer R, events ...string) (got []int, runs int) {
	t.Helper()
	h := must[func(context.Context, T) (R, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[T], withOperation(nil),
		func(context.Context, T) (R, error) { runs++; return answer, nil }))
	for _, text := range events {
		var e T
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		r, err := h(t.Context(), e)
		if err != nil {
			if !strings.Contains(err.Error(), "no HTTP method") {
				t.Errorf("%s: %v", text, err)
			}
			got = append(got, 0)
			continue
		}
		got = append(got, status(r))
	}
	return got, runs
}

// Senders leave parts of an event out, or send null. An event without a method belongs to
// another kind: as a GET its work would not be protected.
func TestProxy_PartsAreNullOrAbsent_NoWrongKeyAndNoRunWithoutOne(t *testing.T) {
	t.Run("REST", func(t *testing.T) {
		got, runs := nulls[events.APIGatewayProxyRequest](t, func(r events.APIGatewayProxyResponse) int { return r.StatusCode }, events.APIGatewayProxyResponse{StatusCode: 201},
			`{"httpMethod":"POST","path":"/pay","headers":null,"multiValueHeaders":null,"body":null}`,
			`{"httpMethod":"POST","path":"/pay","headers":{"idempotency-key":"k"},"multiValueHeaders":{"idempotency-key":null},"queryStringParameters":null,"body":null,"requestContext":null}`,
			`{"httpMethod":"POST","path":"/pay","headers":{"idempotency-key":"k"},"multiValueHeaders":null,"body":""}`,
			`{"version":"2.0","requestContext":{"http":{"method":"POST","path":"/pay"}},"headers":{"idempotency-key":"k2"}}`,
			`{}`, `null`)
		wantEqual(t, got, []int{400, 201, 201, 0, 0, 0})
		wantEqual(t, []int{runs}, []int{1})
	})
	t.Run("HTTP", func(t *testing.T) {
		got, runs := nulls[events.APIGatewayV2HTTPRequest](t, func(r events.APIGatewayV2HTTPResponse) int { return r.StatusCode }, events.APIGatewayV2HTTPResponse{StatusCode: 201},
			`{"requestContext":{"http":{"method":"POST"}},"headers":null,"cookies":null,"body":null}`,
			`{"requestContext":{"http":{"method":"POST"}},"headers":{"idempotency-key":"k"},"body":null}`,
			`{"httpMethod":"POST","path":"/pay","headers":{"idempotency-key":"k"}}`, `{}`)
		wantEqual(t, got, []int{400, 201, 0, 0})
		wantEqual(t, []int{runs}, []int{1})
	})
	t.Run("load balancer", func(t *testing.T) {
		got, runs := nulls[events.ALBTargetGroupRequest](t, func(r events.ALBTargetGroupResponse) int { return r.StatusCode }, events.ALBTargetGroupResponse{StatusCode: 201},
			`{"httpMethod":"POST","headers":null,"multiValueHeaders":null,"body":null}`,
			`{"httpMethod":"POST","multiValueHeaders":{"idempotency-key":["k"]},"body":null,"requestContext":null}`, `{}`)
		wantEqual(t, got, []int{400, 201, 0})
		wantEqual(t, []int{runs}, []int{1})
	})
	t.Run("function URL", func(t *testing.T) {
		got, runs := nulls[events.LambdaFunctionURLRequest](t, func(r events.LambdaFunctionURLResponse) int { return r.StatusCode }, events.LambdaFunctionURLResponse{StatusCode: 201},
			`{"requestContext":{"http":{"method":"POST"}},"headers":null,"body":null}`,
			`{"requestContext":{"http":{"method":"POST"}},"headers":{"idempotency-key":"k"}}`, `{}`)
		wantEqual(t, got, []int{400, 201, 0})
		wantEqual(t, []int{runs}, []int{1})
	})
}
