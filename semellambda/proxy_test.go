package semellambda_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store"
)

// answer is the answer of each kind of proxy, in one form.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// kind sends a request with a key and a body as one kind of event.
type kind struct {
	name string
	make func(t *testing.T, run semel.Runner, o *semelhttp.Options, handle func(ctx context.Context, body string) (int, string, error)) func(key, body string) answer
}

func shared[T any](context.Context, T) (string, error) { return semel.Shared, nil }

func single(h map[string]string) http.Header {
	all := http.Header{}
	for k, v := range h {
		all.Set(k, v)
	}
	return all
}

// withOperation sets the operation of the kinds that have no route.
func withOperation(o *semelhttp.Options) *semelhttp.Options {
	if o == nil {
		o = &semelhttp.Options{}
	}
	o.Operation = func(*http.Request) string { return "pay" }
	return o
}

func headersWith(key string) map[string]string {
	h := map[string]string{"content-type": "application/json", "host": "api.example"}
	if key != "" {
		h["idempotency-key"] = key
	}
	return h
}

var kinds = []kind{
	{"API Gateway v1", func(t *testing.T, run semel.Runner, o *semelhttp.Options, handle func(context.Context, string) (int, string, error)) func(key, body string) answer {
		h := must[func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)](t)(semellambda.Proxy(run, shared[events.APIGatewayProxyRequest], o,
			func(ctx context.Context, r events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
				status, body, err := handle(ctx, r.Body)
				return events.APIGatewayProxyResponse{StatusCode: status, Body: body, Headers: map[string]string{"Location": "/p/1"}}, err
			}))
		return func(key, body string) answer {
			r, err := h(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: "POST", Resource: "/pay/{id}", Path: "/pay/7", Headers: headersWith(key), Body: body,
				MultiValueHeaders: map[string][]string{"X-Other": {"a", "b"}}, QueryStringParameters: map[string]string{"q": "ü &"},
			})
			return answer{r.StatusCode, http.Header(r.MultiValueHeaders), r.Body, err}
		}
	}},
	{"API Gateway v2", func(t *testing.T, run semel.Runner, o *semelhttp.Options, handle func(context.Context, string) (int, string, error)) func(key, body string) answer {
		h := must[func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)](t)(semellambda.Proxy(run, shared[events.APIGatewayV2HTTPRequest], o,
			func(ctx context.Context, r events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
				status, body, err := handle(ctx, r.Body)
				return events.APIGatewayV2HTTPResponse{StatusCode: status, Body: body, Headers: map[string]string{"Location": "/p/1"}, Cookies: []string{"s=1"}}, err
			}))
		return func(key, body string) answer {
			e := events.APIGatewayV2HTTPRequest{RouteKey: "ANY /pay/{id}", RawPath: "/pay/7", RawQueryString: "q=1", Headers: headersWith(key), Body: body}
			e.RequestContext.HTTP.Method = "POST"
			r, err := h(t.Context(), e)
			return answer{r.StatusCode, single(r.Headers), r.Body, err}
		}
	}},
	{"load balancer", func(t *testing.T, run semel.Runner, o *semelhttp.Options, handle func(context.Context, string) (int, string, error)) func(key, body string) answer {
		h := must[func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error)](t)(semellambda.Proxy(run, shared[events.ALBTargetGroupRequest], withOperation(o),
			func(ctx context.Context, r events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
				status, body, err := handle(ctx, r.Body)
				return events.ALBTargetGroupResponse{StatusCode: status, Body: body, Headers: map[string]string{"Location": "/p/1"}}, err
			}))
		return func(key, body string) answer {
			r, err := h(t.Context(), events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/pay/7", Headers: headersWith(key), Body: body})
			if err == nil && !strings.HasPrefix(r.StatusDescription, "20") && !strings.HasPrefix(r.StatusDescription, "4") && !strings.HasPrefix(r.StatusDescription, "5") {
				t.Errorf("StatusDescription is %q", r.StatusDescription)
			}
			return answer{r.StatusCode, single(r.Headers), r.Body, err}
		}
	}},
	{"function URL", func(t *testing.T, run semel.Runner, o *semelhttp.Options, handle func(context.Context, string) (int, string, error)) func(key, body string) answer {
		h := must[func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)](t)(semellambda.Proxy(run, shared[events.LambdaFunctionURLRequest], withOperation(o),
			func(ctx context.Context, r events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
				body, err := base64.StdEncoding.DecodeString(r.Body)
				if err != nil {
					t.Error(err)
				}
				status, out, err := handle(ctx, string(body))
				return events.LambdaFunctionURLResponse{
					StatusCode: status, Body: base64.StdEncoding.EncodeToString([]byte(out)), IsBase64Encoded: true, Headers: map[string]string{"Location": "/p/1"},
				}, err
			}))
		return func(key, body string) answer {
			e := events.LambdaFunctionURLRequest{
				RawPath: "/pay/7", Headers: headersWith(key), Body: base64.StdEncoding.EncodeToString([]byte(body)), IsBase64Encoded: true,
			}
			e.RequestContext.HTTP.Method = "POST"
			r, err := h(t.Context(), e)
			return answer{r.StatusCode, single(r.Headers), r.Body, err}
		}
	}},
}

func TestProxy_EachKind_AnswersAsTheMiddleware(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			runs := 0
			var send func(key, body string) answer
			send = k.make(t, newGuard(t, nil, nil), nil, func(ctx context.Context, body string) (int, string, error) {
				if runs++; runs == 1 {
					if a := send(`"key"`, body); a.status != 409 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "in_progress") {
						t.Errorf("a request in progress: %+v", a)
					}
				}
				x, _ := semel.FromContext(ctx)
				return 201, x.Operation() + " " + body, nil
			})
			first, again := send("key", `{"cents":1}`), send("key", `{"cents":1}`)
			if first.err != nil || first.status != 201 || !strings.HasSuffix(first.body, `{"cents":1}`) || first.header.Get("Location") != "/p/1" {
				t.Errorf("the first answer: %+v", first)
			}
			if again.status != 201 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" || again.header.Get("Location") != "/p/1" {
				t.Errorf("the duplicate's answer: %+v", again)
			}
			for _, c := range []struct {
				key, body, code string
				status          int
			}{{"key", `{"cents":2}`, "payload_mismatch", 422}, {"", `{"cents":1}`, "key_missing", 400}, {"\x01", `{"cents":1}`, "key_malformed", 400}} {
				if a := send(c.key, c.body); a.status != c.status || !strings.Contains(a.body, c.code) || a.header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("key %q, body %s: %+v; want %d, %s", c.key, c.body, a, c.status, c.code)
				}
			}
			if runs != 1 {
				t.Errorf("the handler ran %d times", runs)
			}
			if op := strings.Split(first.body, " {\"c")[0]; op != "POST /pay/{id}" && op != "pay" {
				t.Errorf("the operation is %q", op)
			}
		})
	}
}

func TestProxy_AnswerIsNoResult_FollowsTheTable(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			runs := 0
			status, failure := 0, error(nil)
			send := k.make(t, newGuard(t, nil, nil), nil, func(context.Context, string) (int, string, error) {
				runs++
				return status, "body", failure
			})
			for _, c := range []struct {
				status int
				err    error
				runs   int // of two requests
			}{{503, nil, 2}, {404, nil, 1}, {429, nil, 2}, {0, nil, 2}, {200, errBoom, 2}, {200, semel.NoEffect(errBoom), 2}, {200, semel.Final(errBoom), 1}} {
				status, failure, runs = c.status, c.err, 0
				key := time.Now().Format(time.RFC3339Nano)
				_, a := send(key, "x"), send(key, "x")
				if runs != c.runs {
					t.Errorf("%+v: %d runs", c, runs)
				}
				if _, final := a.err, c.runs == 1; c.err != nil && !final && a.err == nil || final && (a.err != nil || a.status < 400) {
					t.Errorf("%+v: %+v", c, a)
				}
			}
		})
	}
}

// overtaken is an Atomic whose transaction is undone, because another one has committed.
type overtaken struct{ *semel.Guard }

// Run implements semel.Runner.
func (o overtaken) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	_, _ = o.Guard.Run(ctx, call, fn)
	return semel.Result{Replayed: true, Outcome: store.Outcome{Code: 201, Body: []byte("paid")}}, nil
}

// The handler's error was that of the transaction that lost.
func TestProxy_TransactionOvertaken_ReplaysTheAnswer(t *testing.T) {
	for _, k := range kinds {
		send := k.make(t, overtaken{newGuard(t, nil, nil)}, nil, func(context.Context, string) (int, string, error) { return 0, "", errBoom })
		if a := send("key", "x"); a.err != nil || a.status != 201 || a.body != "paid" {
			t.Errorf("%s: %+v; want 201 paid", k.name, a)
		}
	}
}

// A gateway has a default of its own, such as application/json.
func TestProxy_AnswerWithoutType_NoneIsGuessed(t *testing.T) {
	for _, k := range kinds {
		send := k.make(t, newGuard(t, nil, nil), nil, func(context.Context, string) (int, string, error) { return 201, "<html>", nil })
		for i := range 2 {
			if a := send("key", "x"); a.status != 201 || a.body != "<html>" || a.header.Get("Content-Type") != "" {
				t.Errorf("%s, answer %d: %+v", k.name, i, a)
			}
		}
	}
}

func TestProxy_KeyAndPayloadFromBody(t *testing.T) {
	key, err := semellambda.BodyKey("/id")
	if err != nil {
		t.Fatal(err)
	}
	payload, err := semellambda.BodyPayload("/cents")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		runs := 0
		send := k.make(t, newGuard(t, nil, nil), &semelhttp.Options{KeyFrom: key, Payload: payload}, func(context.Context, string) (int, string, error) {
			runs++
			return 200, "ok", nil
		})
		for body, want := range map[string]int{`{"id":"a","cents":1,"at":1}`: 200, `{"cents":1,"at":2,"id":"a"}`: 200, `{"cents":1}`: 400, `{"id":"b"}`: 400} {
			if a := send("", body); a.status != want {
				t.Errorf("%s: %s: %+v", k.name, body, a)
			}
		}
		if a := send("", `{"id":"a","cents":2}`); a.status != 422 || runs != 1 {
			t.Errorf("%s: another payload: %+v, %d runs", k.name, a, runs)
		}
	}
	if _, err := semellambda.BodyKey("id"); err == nil {
		t.Error("a wrong pointer is accepted")
	}
	if _, err := semellambda.BodyPayload(); err == nil {
		t.Error("no pointer is accepted")
	}
}

func TestProxy_BinaryAnswer_IsBase64AndReplayed(t *testing.T) {
	content := "\xff\x00png"
	h := must[func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)](t)(semellambda.Proxy(newGuard(t, nil, nil), shared[events.APIGatewayV2HTTPRequest], nil,
		func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: base64.StdEncoding.EncodeToString([]byte(content)), IsBase64Encoded: true, Cookies: []string{"a=1", "b=2"}}, nil
		}))
	e := events.APIGatewayV2HTTPRequest{RouteKey: "$default", RawPath: "/a%2Fb", Headers: headersWith("k")}
	e.RequestContext.HTTP.Method = "POST"
	for i := range 2 {
		r, err := h(t.Context(), e)
		if body, _ := base64.StdEncoding.DecodeString(r.Body); err != nil || !r.IsBase64Encoded || string(body) != content {
			t.Errorf("got %+v, %v", r, err)
		}
		if want := []int{2, 0}[i]; len(r.Cookies) != want { // cookies are never kept
			t.Errorf("answer %d has the cookies %v", i, r.Cookies)
		}
	}
}

func TestProxy_Wrong_Refused(t *testing.T) {
	g := newGuard(t, nil, nil)
	if _, err := semellambda.Proxy(g, shared[events.APIGatewayProxyRequest], nil, func(context.Context, events.APIGatewayProxyRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{}, nil
	}); err == nil || !strings.Contains(err.Error(), "its own kind") {
		t.Errorf("a response of another kind: %v", err)
	}
	fn := func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{}, nil
	}
	if _, err := semellambda.Proxy(g, shared[events.LambdaFunctionURLRequest], nil, fn); err == nil || !strings.Contains(err.Error(), "Options.Operation") {
		t.Errorf("a function URL without an operation: %v", err)
	}
	if _, err := semellambda.Proxy(g, nil, withOperation(nil), fn); err == nil {
		t.Error("no tenant, and no error")
	}
	if _, err := semellambda.Proxy(nil, shared[events.LambdaFunctionURLRequest], withOperation(nil), fn); err == nil {
		t.Error("no runner, and no error")
	}
}
