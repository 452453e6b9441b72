package semelgrpc_test

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelgrpc"
	"github.com/semel-go/semel/store/memstore"
)

func ExampleUnaryServerInterceptor() {
	guard, err := semel.New(memstore.New(nil), nil) // in production: pgstore or another database
	if err != nil {
		panic(err)
	}
	protect, err := semelgrpc.UnaryServerInterceptor(guard, semelgrpc.Options{
		Tenant:   semelgrpc.Shared,
		Required: []string{"/bank.v1.Bank/Pay"},
	})
	if err != nil {
		panic(err)
	}
	// grpc.NewServer(grpc.ChainUnaryInterceptor(authenticate, protect))
	pay := func(context.Context, any) (any, error) {
		fmt.Println("paying")
		return wrapperspb.String("receipt"), nil
	}
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("idempotency-key", "order-17"))
	for range 2 {
		resp, err := protect(ctx, wrapperspb.Int64(4200), &grpc.UnaryServerInfo{FullMethod: "/bank.v1.Bank/Pay"}, pay)
		fmt.Println(resp.(*wrapperspb.StringValue).GetValue(), err)
	}
	// Output:
	// paying
	// receipt <nil>
	// receipt <nil>
}
