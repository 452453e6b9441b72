package semellambda_test

import (
	"context"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel/semellambda"
)

// Two stages of a REST API may share a table of records. At the domain of the gateway only
// the path in the request's context has the stage.
func TestProxy_OtherStageOfAPI_IsOtherRequest(t *testing.T) {
	const sentByProd = "/prod/pay/a%2Fb"
	for name, c := range map[string]struct {
		path, sentPath string
		status, runs   int
	}{
		"the same stage":              {"/pay/a%2Fb", sentByProd, 201, 1},
		"the same stage, with slash":  {"/pay/a%2Fb/", sentByProd + "/", 201, 1},
		"another stage":               {"/pay/a%2Fb", "/test/pay/a%2Fb", 422, 1},
		"another domain with no path": {"/pay/a%2Fb", "/pay/a%2Fb", 422, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			h := must[func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayProxyRequest], nil,
				func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
					runs++
					return events.APIGatewayProxyResponse{StatusCode: 201}, nil
				}))
			send := func(path, sentPath string) int {
				e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/pay/{id}", Path: path, Headers: headersWith("k"), QueryStringParameters: map[string]string{"q": "ü &"}}
				e.RequestContext.Path = sentPath
				r, err := h(t.Context(), e)
				if err != nil {
					t.Error(err)
				}
				return r.StatusCode
			}
			if status := send("/pay/a%2Fb", sentByProd); status != 201 {
				t.Errorf("the first request: %d", status)
			}
			if status := send(c.path, c.sentPath); status != c.status || runs != c.runs {
				t.Errorf("%d after %d runs, want %d after %d", status, runs, c.status, c.runs)
			}
		})
	}
}

// A path in the context that has another form than the path of the event does not count.
func TestProxy_PathInContextIsAbsentOrOther_DoesNotCount(t *testing.T) {
	runs := 0
	h := must[func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayProxyRequest], nil,
		func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			runs++
			return events.APIGatewayProxyResponse{StatusCode: 201}, nil
		}))
	for _, sentPath := range []string{"", "/pay", "/prod/other", "/%zz"} {
		e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/pay", Path: "/pay", Headers: headersWith("k")}
		e.RequestContext.Path = sentPath
		if r, err := h(t.Context(), e); err != nil || r.StatusCode != 201 || runs != 1 {
			t.Errorf("%q: %d, %v, %d runs", sentPath, r.StatusCode, err, runs)
		}
	}
}

// The path of a stage's root has no slash at its end.
func TestProxy_RootOfOtherStage_IsOtherRequest(t *testing.T) {
	h := must[func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayProxyRequest], nil,
		func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
			return events.APIGatewayProxyResponse{StatusCode: 201}, nil
		}))
	for _, c := range []struct {
		sentPath string
		status   int
	}{{"/prod", 201}, {"/prod/", 201}, {"/test", 422}} {
		e := events.APIGatewayProxyRequest{HTTPMethod: "POST", Resource: "/", Path: "/", Headers: headersWith("k")}
		e.RequestContext.Path = c.sentPath
		if r, err := h(t.Context(), e); err != nil || r.StatusCode != c.status {
			t.Errorf("%s: %d, %v; want %d", c.sentPath, r.StatusCode, err, c.status)
		}
	}
}
