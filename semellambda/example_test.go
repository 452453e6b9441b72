package semellambda_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleWrap() {
	guard, err := semel.New(memstore.New(nil), nil) // in production: dynamostore
	if err != nil {
		panic(err)
	}
	type order struct {
		ID    string
		Cents int
	}
	handler, err := semellambda.Wrap(guard, semellambda.Options[order]{
		Operation: "charge", Tenant: semellambda.Shared[order], KeyPointers: []string{"/ID"}, PayloadPointers: []string{"/Cents"},
	}, func(ctx context.Context, o order) (string, error) {
		fmt.Println("charging", o.Cents)
		return "receipt of " + o.ID, nil
	})
	if err != nil {
		panic(err)
	}
	// lambda.Start(handler)
	for range 2 {
		fmt.Println(handler(context.Background(), json.RawMessage(`{"ID":"order-17","Cents":4200}`)))
	}
	// Output:
	// charging 4200
	// receipt of order-17 <nil>
	// receipt of order-17 <nil>
}

func ExampleProxy() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	type (
		request  = events.APIGatewayV2HTTPRequest
		response = events.APIGatewayV2HTTPResponse
	)
	account := func(_ context.Context, r request) (string, error) {
		return r.RequestContext.Authorizer.JWT.Claims["sub"], nil // the gateway has checked the token
	}
	handler, err := semellambda.Proxy(guard, account, nil, func(ctx context.Context, r request) (response, error) {
		return response{StatusCode: 201, Body: "paid"}, nil
	})
	if err != nil {
		panic(err)
	}
	// lambda.Start(handler)
	r := request{RouteKey: "POST /payments", RawPath: "/payments", Headers: map[string]string{"idempotency-key": "order-17"}}
	r.RequestContext.HTTP.Method = "POST"
	r.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"sub": "ann"}},
	}
	for range 2 {
		a, err := handler(context.Background(), r)
		fmt.Println(a.StatusCode, a.Body, a.Headers["Idempotent-Replayed"], err)
	}
	// Output:
	// 201 paid  <nil>
	// 201 paid true <nil>
}

func ExampleSQS() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	handler, err := semellambda.SQS(guard, semellambda.Options[events.SQSMessage]{
		Operation: "book", Tenant: semellambda.Shared[events.SQSMessage], KeyPointers: []string{"/id"},
	}, func(ctx context.Context, m events.SQSMessage) error {
		fmt.Println("booking", m.Body)
		return nil
	})
	if err != nil {
		panic(err)
	}
	// lambda.Start(handler)
	r, err := handler(context.Background(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", Body: `{"id":"order-17"}`}, {MessageId: "2", Body: `{"id":"order-17"}`},
	}})
	fmt.Println(r.BatchItemFailures, err)
	// Output:
	// booking {"id":"order-17"}
	// [] <nil>
}
