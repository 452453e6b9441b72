package semelconnect_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelconnect"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleNewInterceptor() {
	guard, err := semel.New(memstore.New(nil), nil) // in production: pgstore or another database
	if err != nil {
		panic(err)
	}
	protect, err := semelconnect.NewInterceptor(guard, semelconnect.Options{Tenant: semelconnect.Shared})
	if err != nil {
		panic(err)
	}
	// Generated code has NewBankHandler(bank, connect.WithInterceptors(protect)).
	server := httptest.NewServer(connect.NewUnaryHandler("/bank.v1.Bank/Pay",
		func(context.Context, *connect.Request[wrapperspb.Int64Value]) (*connect.Response[wrapperspb.StringValue], error) {
			fmt.Println("paying")
			return connect.NewResponse(wrapperspb.String("receipt")), nil
		}, connect.WithInterceptors(protect)))
	defer server.Close()
	client := connect.NewClient[wrapperspb.Int64Value, wrapperspb.StringValue](server.Client(), server.URL+"/bank.v1.Bank/Pay")
	for range 2 {
		req := connect.NewRequest(wrapperspb.Int64(4200))
		req.Header().Set("Idempotency-Key", "order-17")
		resp, err := client.CallUnary(context.Background(), req)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s, replayed: %q\n", resp.Msg.GetValue(), resp.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// paying
	// receipt, replayed: ""
	// receipt, replayed: "true"
}
